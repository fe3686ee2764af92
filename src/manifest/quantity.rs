//! Kubernetes' quantities: `100m`, `0.5`, `128Mi`, `1G`.

/// Cores.
pub(super) fn cores(text: &str) -> Option<f64> {
    number(text)
}

/// MiB, rounded up.
pub(super) fn mebibytes(text: &str) -> Option<u64> {
    let bytes = number(text)?;
    Some((bytes / f64::from(1 << 20)).ceil() as u64)
}

fn number(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
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
    let (number, unit) = text.split_at(split);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<f64>().ok().map(|number| number * factor).filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!((cores("100m"), cores("0.5"), cores("2")), (Some(0.1), Some(0.5), Some(2.0)));
        assert_eq!((mebibytes("128Mi"), mebibytes("1G"), mebibytes("1")), (Some(128), Some(954), Some(1)));
        for wrong in ["", "x", "1x", "-1", "1MiB", "nan"] {
            assert_eq!(cores(wrong), None, "{wrong}");
        }
    }
}
