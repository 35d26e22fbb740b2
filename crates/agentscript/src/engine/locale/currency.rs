//! Currencies as CLDR 48 (ICU 78, Node 22) has them in English: their signs, and how many digits stand behind the point.

use super::options::{Mistake, Options, shortened};

const CURRENCY: usize = 2;
const CURRENCY_DISPLAY: usize = 3;

/// Signs of currencies; any other is written as its code.
const SIGNS: [(&str, &str); 23] = [
    ("AUD", "A$"),
    ("BRL", "R$"),
    ("CAD", "CA$"),
    ("CNY", "CN¥"),
    ("EUR", "€"),
    ("GBP", "£"),
    ("HKD", "HK$"),
    ("ILS", "₪"),
    ("INR", "₹"),
    ("JPY", "¥"),
    ("KRW", "₩"),
    ("MXN", "MX$"),
    ("NZD", "NZ$"),
    ("PHP", "₱"),
    ("TWD", "NT$"),
    ("USD", "$"),
    ("VND", "₫"),
    ("XAF", "FCFA"),
    ("XCD", "EC$"),
    ("XCG", "Cg."),
    ("XOF", "F\u{202f}CFA"),
    ("XPF", "CFPF"),
    ("XXX", "¤"),
];

/// Signs that are short rather than unmistakable, where they differ.
const NARROW: [(&str, &str); 91] = [
    ("AFN", "\u{60b}"),
    ("AMD", "֏"),
    ("AOA", "Kz"),
    ("ARS", "$"),
    ("AUD", "$"),
    ("AZN", "₼"),
    ("BAM", "KM"),
    ("BBD", "$"),
    ("BDT", "\u{9f3}"),
    ("BMD", "$"),
    ("BND", "$"),
    ("BOB", "Bs"),
    ("BSD", "$"),
    ("BWP", "P"),
    ("BZD", "$"),
    ("CAD", "$"),
    ("CLP", "$"),
    ("CNY", "¥"),
    ("COP", "$"),
    ("CRC", "₡"),
    ("CUC", "$"),
    ("CUP", "$"),
    ("CZK", "Kč"),
    ("DKK", "kr"),
    ("DOP", "$"),
    ("EGP", "E£"),
    ("ESP", "₧"),
    ("FJD", "$"),
    ("FKP", "£"),
    ("GEL", "₾"),
    ("GHS", "GH₵"),
    ("GIP", "£"),
    ("GNF", "FG"),
    ("GTQ", "Q"),
    ("GYD", "$"),
    ("HKD", "$"),
    ("HNL", "L"),
    ("HRK", "kn"),
    ("HUF", "Ft"),
    ("IDR", "Rp"),
    ("ISK", "kr"),
    ("JMD", "$"),
    ("KGS", "\u{20c0}"),
    ("KHR", "\u{17db}"),
    ("KMF", "CF"),
    ("KPW", "₩"),
    ("KYD", "$"),
    ("KZT", "₸"),
    ("LAK", "₭"),
    ("LBP", "L£"),
    ("LKR", "Rs"),
    ("LRD", "$"),
    ("LTL", "Lt"),
    ("LVL", "Ls"),
    ("MGA", "Ar"),
    ("MMK", "K"),
    ("MNT", "₮"),
    ("MUR", "Rs"),
    ("MXN", "$"),
    ("MYR", "RM"),
    ("NAD", "$"),
    ("NGN", "₦"),
    ("NIO", "C$"),
    ("NOK", "kr"),
    ("NPR", "Rs"),
    ("NZD", "$"),
    ("PKR", "Rs"),
    ("PLN", "zł"),
    ("PYG", "₲"),
    ("RON", "lei"),
    ("RUB", "₽"),
    ("RWF", "RF"),
    ("SBD", "$"),
    ("SEK", "kr"),
    ("SGD", "$"),
    ("SHP", "£"),
    ("SRD", "$"),
    ("SSP", "£"),
    ("STN", "Db"),
    ("SYP", "£"),
    ("THB", "\u{e3f}"),
    ("TOP", "T$"),
    ("TRY", "₺"),
    ("TTD", "$"),
    ("TWD", "$"),
    ("UAH", "₴"),
    ("UYU", "$"),
    ("VEF", "Bs"),
    ("XCD", "$"),
    ("ZAR", "R"),
    ("ZMW", "ZK"),
];

/// Currencies without digits behind the point.
const WHOLE: &str = "ADP AFN ALL BIF BYR CLP COP DJF ESP GNF HUF IDR IQD IRR ISK ITL JPY KMF KPW KRW LAK LBP LUF MGA \
    MGF MMK MRO PKR PYG RWF SLL SOS STD SYP TMM TRL UGX UYI VND VUV XAF XOF XPF YER ZMK ZWD";

/// A currency as it is written.
pub(super) struct Money {
    pub(super) sign: String,
    /// Digits behind the point.
    pub(super) places: usize,
}

/// The currency that the options ask for.
///
/// # Errors
/// A code that is none, or none where the style needs one.
pub(super) fn currency(options: &Options<'_>, style: &str) -> Result<Option<Money>, Mistake> {
    let display = options.one_of(CURRENCY_DISPLAY, "currencyDisplay", &["symbol", "narrowSymbol", "code"])?;
    let code = options.get(CURRENCY).map(str::to_ascii_uppercase);
    if let Some(code) = &code
        && (code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()))
    {
        return Err(Mistake::Range(format!("Invalid currency code : {}", shortened(code))));
    }
    if style != "currency" {
        return Ok(None);
    }
    let Some(code) = code else {
        return Err(Mistake::Type("Currency code is required with currency style.".to_owned()));
    };
    let places = match code.as_str() {
        whole if WHOLE.split(' ').any(|one| one == whole) => 0,
        "BHD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    };
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(known, _)| *known == code).map(|(_, sign)| *sign)
    };
    let sign = match display {
        "code" => None,
        "narrowSymbol" => find(&NARROW).or_else(|| find(&SIGNS)),
        _ => find(&SIGNS),
    };
    Ok(Some(Money { sign: sign.map_or(code, str::to_owned), places }))
}
