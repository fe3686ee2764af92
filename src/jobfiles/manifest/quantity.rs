//! Kubernetes' quantities, by its whole grammar: `100m`, `0.5`, `128Mi`, `1G`, `129e6`.

/// Cores.
pub(super) fn cores(text: &str) -> Option<f64> {
    number(text)
}

/// MiB, rounded up.
pub(super) fn mebibytes(text: &str) -> Option<u64> {
    let bytes = number(text)?;
    Some((bytes / f64::from(1 << 20)).ceil() as u64)
}

/// A signed decimal number and a suffix: of 1024 (`Ki` to `Ei`), of 1000 (`n` to `E`), or an exponent (`e6`, `E-3`).
fn number(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 16] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let is_decimal = number.bytes().any(|byte| byte.is_ascii_digit())
        && number.strip_prefix(['+', '-']).unwrap_or(number).bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = number.parse::<f64>().ok().filter(|_| is_decimal)?;
    let value = match (UNITS.iter().find(|(name, _)| *name == suffix), suffix.strip_prefix(['e', 'E'])) {
        (Some((_, factor)), _) => value * factor,
        (None, Some(exponent)) => value * 10_f64.powi(exponent.parse::<i32>().ok()?),
        (None, None) => return None,
    };
    // A request below nothing is refused by Kubernetes too.
    Some(value).filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!((cores("100m"), cores("0.5"), cores("2")), (Some(0.1), Some(0.5), Some(2.0)));
        assert_eq!((mebibytes("128Mi"), mebibytes("1G"), mebibytes("1")), (Some(128), Some(954), Some(1)));
        for (written, meant) in [
            ("129e6", 129e6),
            ("129E6", 129e6),
            ("1e3", 1e3),
            ("12E-1", 1.2),
            ("5e+2", 500.0),
            ("1E", 1e18),
            ("2Ei", 2_305_843_009_213_693_952.0),
            ("+1", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("250000000n", 0.25),
            ("500u", 5e-4),
            ("0", 0.0),
        ] {
            let read = number(written).unwrap_or_else(|| panic!("{written} was refused"));
            assert!((read - meant).abs() <= meant * 1e-12, "{written}: {read}");
        }
        assert_eq!(mebibytes("129e6"), Some(124));
        for wrong in
            ["", "x", "1x", "-1", "1MiB", "nan", "inf", "1e", "1e1.5", "1 Mi", "1KI", "1mi", ".", "1e9999", "--1"]
        {
            assert_eq!(cores(wrong), None, "{wrong}");
        }
    }
}
