import { Trans, useLingui } from "@lingui/react/macro";
import { useState } from "react";
import { problemOf } from "../api/client";
import { lookWhoIsThere, openSession, type SignIn } from "../api/session";
import icon from "../icon.svg";
import { Button } from "../ui/button";
import { Failure, Loading } from "../ui/feedback";
import { Field } from "../ui/field";
import { Preferences } from "../ui/preferences";

export function Login({ who }: { who: Exclude<SignIn, { state: "in" }> }) {
  const { t } = useLingui();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  if (who.state === "asking") return <Loading />;
  const enter = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      await openSession(token.trim());
      setToken("");
    } catch (thrown) {
      setRefused(thrown);
    } finally {
      setBusy(false);
    }
  };
  const wrong = refused !== undefined && problemOf(refused).status === 401;
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-5 p-4">
      <title>Campanile</title>
      <div className="flex items-center gap-3">
        <img src={icon} alt="" className="size-11" />
        <div>
          <h1 className="text-xl font-semibold">Campanile</h1>
          <p className="text-soft">
            <Trans>Sign in to see jobs and runs.</Trans>
          </p>
        </div>
      </div>
      {who.ended && (
        <p role="status" className="rounded-lg bg-warn-wash p-3 text-warn">
          <Trans>Your session has ended. Sign in again to go on where you were.</Trans>
        </p>
      )}
      {who.problem ? (
        <Failure error={who.problem} retry={() => void lookWhoIsThere()} />
      ) : (
        <form
          className="card space-y-4 p-5"
          onSubmit={(event) => {
            event.preventDefault();
            if (token.trim() && !busy) void enter();
          }}
        >
          <Field
            label={<Trans>Token</Trans>}
            hint={<Trans>The token that the command line uses. `campanile token new` makes one.</Trans>}
            error={wrong ? problemOf(refused).message : undefined}
          >
            <input
              className="input font-mono"
              type="password"
              autoComplete="current-password"
              autoFocus
              spellCheck={false}
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          </Field>
          {refused !== undefined && !wrong && <Failure error={refused} compact />}
          <Button type="submit" kind="primary" className="w-full" disabled={!token.trim() || busy} aria-busy={busy}>
            {busy ? <Trans>Signing in…</Trans> : <Trans>Sign in</Trans>}
          </Button>
          <p className="text-[0.84rem] text-faint">
            <Trans>
              The page forgets the token at once. The session lives in a cookie that scripts cannot read, and ends after
              twelve hours or when the token is taken back.
            </Trans>
          </p>
        </form>
      )}
      <div className="flex justify-center">
        <Preferences label={t`Language and theme`} />
      </div>
    </main>
  );
}
