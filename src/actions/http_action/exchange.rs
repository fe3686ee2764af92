//! Sends a request, follows redirects, reads the head of the answer's body, judges the status.

use super::{
    Failed, Fault, Outbound,
    connect::{Origin, Wire},
    request::Prepared,
    transcript::Transcript,
};
use bytes::Bytes;
use campanile_schema::limits::HTTP_ACTION_HEAD_BYTES;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, error::Error};

/// A good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptedResponse {
    pub status: StatusCode,
    /// Bytes of the body that were read.
    pub bytes: usize,
}

/// What came of one request.
enum Step {
    Answered(AcceptedResponse),
    /// A redirect with the place it leads to.
    Redirected(StatusCode, String),
}

/// Dropping the future ends the connection.
pub(super) async fn send(
    outbound: &Outbound,
    mut request: Prepared,
    transcript: &mut Transcript,
) -> Result<AcceptedResponse, Failed> {
    loop {
        let origin = Origin::of(&request.url);
        // Without the query, which is long and often personal; and as it was written, since it may hold secrets.
        let path = request.written.as_deref().unwrap_or_else(|| request.url.path());
        transcript.line(&format!("> {} {origin}{path}", request.method));
        let wire = outbound.connect(&origin).await?;
        match once(wire, &request, &origin, transcript).await? {
            Step::Answered(answer) => return judge(answer, request.expect, transcript),
            Step::Redirected(status, location) => {
                let Some(left) = request.redirects_left.checked_sub(1) else {
                    let why = format!(
                        "the answer {status} leads to {location}, and maxRedirects lets no further one be followed"
                    );
                    return Err(Failed::new(Fault::Redirected, why));
                };
                request.redirects_left = left;
                request.redirected(status, &location)?;
            }
        }
    }
}

fn judge(
    answer: AcceptedResponse,
    (low, high): (u16, u16),
    transcript: &mut Transcript,
) -> Result<AcceptedResponse, Failed> {
    if (low..=high).contains(&answer.status.as_u16()) {
        return Ok(answer);
    }
    let why = format!("status {}, expected {low} to {high}{}", answer.status, transcript.excerpt());
    Err(Failed::new(Fault::Status, why))
}

async fn once(
    wire: Box<dyn Wire>,
    request: &Prepared,
    origin: &Origin,
    transcript: &mut Transcript,
) -> Result<Step, Failed> {
    let mut client = http1::Builder::new();
    client.max_buf_size(HTTP_ACTION_HEAD_BYTES);
    let (mut sender, connection) = client.handshake(TokioIo::new(wire)).await.map_err(|error| broke(&error))?;
    let talking = async {
        let response = sender.send_request(head(request, origin)?).await.map_err(|error| broke(&error))?;
        let status = response.status();
        transcript.line(&format!("< {status}"));
        match location(&response) {
            Some(location) if request.redirects_left > 0 || !is_expected(status, request) => {
                Ok(Step::Redirected(status, location))
            }
            Some(_) | None => Ok(Step::Answered(AcceptedResponse { status, bytes: body(response, transcript).await? })),
        }
    };
    let driving = async {
        // Its error is told to the sender too; what it has received before its end is still to be read.
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! { step = talking => step, never = driving => match never {} }
}

fn is_expected(status: StatusCode, request: &Prepared) -> bool {
    (request.expect.0..=request.expect.1).contains(&status.as_u16())
}

fn head(request: &Prepared, origin: &Origin) -> Result<Request<Full<Bytes>>, Failed> {
    let path = request.url.path_and_query().map_or("/", |path| path.as_str());
    let built = Request::builder().method(&request.method).uri(path).header(header::HOST, origin.host_header());
    let built = built.body(Full::new(request.body.clone()));
    let mut built = built.map_err(|error| Failed::new(Fault::Template, format!("no request can be made: {error}")))?;
    built.headers_mut().extend(request.headers.clone());
    Ok(built)
}

/// Where a redirect leads; None for all other answers.
fn location(response: &Response<Incoming>) -> Option<String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    response.headers().get(header::LOCATION)?.to_str().ok().map(str::to_owned)
}

/// Writes the body's head down; returns how many bytes were read.
async fn body(response: Response<Incoming>, transcript: &mut Transcript) -> Result<usize, Failed> {
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broke(&error))?;
        if let Some(piece) = frame.data_ref() {
            bytes += piece.len();
            if !transcript.body(piece) {
                break;
            }
        }
    }
    Ok(bytes)
}

/// hyper's texts say little without their causes.
fn broke(error: &hyper::Error) -> Failed {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        why = format!("{why}: {deeper}");
        cause = deeper.source();
    }
    if error.is_parse() {
        Failed::new(Fault::AnswerInvalid, format!("the answer is not HTTP/1.1: {why}"))
    } else {
        Failed::new(Fault::ConnectFailed, format!("the connection broke: {why}"))
    }
}
