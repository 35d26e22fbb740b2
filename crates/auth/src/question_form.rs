//! Forms of questions of plans: the fields that a `requestedSchema` describes (MCP 2025-11-25, elicitation), and the content that they have.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use url::Url;

use crate::web::params::Params;

/// Fields of one form.
const MOST_FIELDS: usize = 40;
/// Choices of one field.
const MOST_CHOICES: usize = 200;
/// Choices of all fields of a form.
const MOST_CHOICES_IN_ALL: usize = 500;

/// A field of a form.
pub(crate) struct Field {
    /// Name of its input: no text of a stranger.
    pub(crate) input: String,
    /// Name of the property.
    pub(crate) property: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) kind: Kind,
    pub(crate) default: Value,
}

/// Kind of a field.
pub(crate) enum Kind {
    /// A text of a format, with as many characters.
    Text {
        format: Format,
        least: u64,
        most: Option<u64>,
    },
    Number {
        is_integer: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Yes,
    One(Vec<Choice>),
    /// As many of the choices.
    Many {
        choices: Vec<Choice>,
        least: u64,
        most: Option<u64>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Any,
    Email,
    Uri,
    Date,
    /// In UTC.
    DateTime,
}

pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: String,
}

/// Errors of a form by the inputs that they are about.
pub(crate) type Errors = BTreeMap<String, String>;

/// Returns the fields of the form `n`; `None` for a schema that has too many, or is none of a form.
pub(crate) fn fields(n: usize, schema: &Value) -> Option<Vec<Field>> {
    let properties = schema["properties"].as_object()?;
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if properties.len() > MOST_FIELDS {
        return None;
    }
    let field = |(at, (property, about)): (usize, (&String, &Value))| {
        let text = |name: &str| about[name].as_str().map(str::to_owned);
        Some(Field {
            input: format!("q{n}.f{at}"),
            property: property.clone(),
            title: text("title"),
            description: text("description"),
            is_required: is_required(property),
            kind: Kind::of(about)?,
            default: about["default"].clone(),
        })
    };
    let fields: Vec<Field> = properties.iter().enumerate().map(field).collect::<Option<_>>()?;
    let choices: usize = fields.iter().map(|field| field.kind.choices().len()).sum();
    (choices <= MOST_CHOICES_IN_ALL).then_some(fields)
}

impl Kind {
    fn of(about: &Value) -> Option<Self> {
        if let Some(choices) = choices(about) {
            return choices.map(Self::One);
        }
        Some(match about["type"].as_str()? {
            "boolean" => Self::Yes,
            kind @ ("number" | "integer") => Self::Number {
                is_integer: kind == "integer",
                least: about["minimum"].as_f64(),
                most: about["maximum"].as_f64(),
            },
            "array" => Self::Many {
                choices: choices(&about["items"])??,
                least: about["minItems"].as_u64().unwrap_or(0),
                most: about["maxItems"].as_u64(),
            },
            "string" => Self::Text {
                format: match about["format"].as_str() {
                    Some("email") => Format::Email,
                    Some("uri") => Format::Uri,
                    Some("date") => Format::Date,
                    Some("date-time") => Format::DateTime,
                    _ => Format::Any,
                },
                least: about["minLength"].as_u64().unwrap_or(0),
                most: about["maxLength"].as_u64(),
            },
            _ => return None,
        })
    }

    fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Many { choices, .. } => choices,
            Self::Text { .. } | Self::Number { .. } | Self::Yes => &[],
        }
    }
}

/// The choices of a schema with `enum`, `oneOf` or `anyOf`; the inner `None` for too many, or others than texts.
fn choices(about: &Value) -> Option<Option<Vec<Choice>>> {
    let (listed, names) = match (&about["enum"], &about["enumNames"]) {
        (Value::Array(listed), names) => (listed, names.as_array()),
        _ => (about["oneOf"].as_array().or_else(|| about["anyOf"].as_array())?, None),
    };
    if listed.is_empty() || listed.len() > MOST_CHOICES {
        return Some(None);
    }
    let choice = |(at, one): (usize, &Value)| {
        let value = one.as_str().or_else(|| one["const"].as_str())?;
        let title = one["title"].as_str().or_else(|| names?.get(at)?.as_str()).unwrap_or(value);
        Some(Choice { value: value.to_owned(), title: title.to_owned() })
    };
    Some(listed.iter().enumerate().map(choice).collect())
}

/// Returns the content of a form as the parameters have it.
///
/// # Errors
/// Fields that are missing, or that do not fit.
pub(crate) fn content(fields: &[Field], params: &Params) -> Result<Value, Errors> {
    let (mut content, mut errors) = (Map::new(), Errors::new());
    for field in fields {
        match field.read(params) {
            Ok(Some(value)) => drop(content.insert(field.property.clone(), value)),
            Ok(None) if field.is_required => {
                drop(errors.insert(field.input.clone(), "This is needed.".to_owned()))
            }
            Ok(None) => {}
            Err(error) => drop(errors.insert(field.input.clone(), error)),
        }
    }
    if errors.is_empty() { Ok(Value::Object(content)) } else { Err(errors) }
}

impl Field {
    /// The name of the box for choice `at`.
    pub(crate) fn option(&self, at: usize) -> String {
        format!("{}.o{at}", self.input)
    }

    fn read(&self, params: &Params) -> Result<Option<Value>, String> {
        let given = params.get(&self.input);
        match &self.kind {
            Kind::Yes => Ok(Some(given.is_some().into())),
            Kind::Many { choices, least, most } => {
                let ticked = |at: &usize| params.get(&self.option(*at)).is_some();
                let chosen: Vec<&str> =
                    (0..choices.len()).filter(ticked).map(|at| &*choices[at].value).collect();
                let count = chosen.len() as u64;
                if count == 0 && !self.is_required {
                    return Ok(None);
                }
                within("choices", Some(*least), *most, count)?;
                Ok(Some(json!(chosen)))
            }
            Kind::One(choices) => match given {
                None => Ok(None),
                Some(given) => {
                    let chosen = given.parse().ok().and_then(|at: usize| choices.get(at));
                    let chosen = chosen.ok_or_else(|| "Choose one of the options.".to_owned())?;
                    Ok(Some(chosen.value.clone().into()))
                }
            },
            Kind::Number { is_integer, least, most } => {
                let Some(given) = given.map(str::trim) else { return Ok(None) };
                let whole = given.parse::<i64>().ok();
                let number = given.parse::<f64>().ok().filter(|number| number.is_finite());
                match (number, whole) {
                    (_, None) if *is_integer => Err("Enter a whole number.".to_owned()),
                    (None, _) => Err("Enter a number.".to_owned()),
                    (Some(number), _) if least.is_some_and(|least| number < least) => {
                        Err(format!("This must be at least {}.", least.unwrap_or_default()))
                    }
                    (Some(number), _) if most.is_some_and(|most| number > most) => {
                        Err(format!("This must be at most {}.", most.unwrap_or_default()))
                    }
                    (_, Some(whole)) => Ok(Some(whole.into())),
                    (Some(number), None) => Ok(Some(number.into())),
                }
            }
            Kind::Text { format, least, most } => {
                let Some(given) = given else { return Ok(None) };
                within("characters", Some(*least), *most, given.chars().count() as u64)?;
                format.read(given).map(Some)
            }
        }
    }
}

fn within(unit: &str, least: Option<u64>, most: Option<u64>, count: u64) -> Result<(), String> {
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("At least {least} {unit} are needed.")),
        (_, Some(most)) if count > most => Err(format!("At most {most} {unit} fit.")),
        _ => Ok(()),
    }
}

impl Format {
    fn read(self, given: &str) -> Result<Value, String> {
        let problem = match self {
            Self::Any => return Ok(given.into()),
            Self::Email if given.split_once('@').is_some_and(|(to, at)| !to.is_empty() && !at.is_empty()) => {
                return Ok(given.into());
            }
            Self::Email => "Enter an email address.",
            Self::Uri if Url::parse(given).is_ok() => return Ok(given.into()),
            Self::Uri => "Enter a whole address, such as https://example.com.",
            Self::Date if is_date(given) => return Ok(given.into()),
            Self::Date => "Enter a date, such as 2026-07-28.",
            Self::DateTime => match date_time(given) {
                Some(time) => return Ok(time.into()),
                None => "Enter a date and a time, such as 2026-07-28T12:00.",
            },
        };
        Err(problem.to_owned())
    }
}

fn is_date(text: &str) -> bool {
    let digits = |part: &str, len| part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits =
        |part: &str, most: u8| digits(part, 2) && part.parse().is_ok_and(|n: u8| (1..=most).contains(&n));
    matches!(text.split('-').collect::<Vec<_>>()[..], [year, month, day] if digits(year, 4) && fits(month, 12) && fits(day, 31))
}

/// A time as an input of browsers has it, without a zone, as one of RFC 3339 in UTC.
fn date_time(text: &str) -> Option<String> {
    let (date, time) = text.strip_suffix('Z').unwrap_or(text).split_once('T')?;
    let parts: Vec<&str> = time.split(':').collect();
    let fits = |part: &str, below: u8| part.len() == 2 && part.parse().is_ok_and(|n: u8| n < below);
    match parts[..] {
        [hours, minutes] if is_date(date) && fits(hours, 24) && fits(minutes, 60) => {
            Some(format!("{date}T{time}:00Z"))
        }
        [hours, minutes, seconds]
            if is_date(date) && fits(hours, 24) && fits(minutes, 60) && fits(seconds, 60) =>
        {
            Some(format!("{date}T{time}Z"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["name", "count", "tags", "mail"], "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}},
            "mail": {"type": "string", "format": "email"},
            "site": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
        }})
    }

    fn read(form: &str) -> Result<Value, Errors> {
        content(&fields(0, &schema()).unwrap(), &Params::parse(form.as_bytes()).unwrap())
    }

    #[test]
    fn a_form_has_the_types_of_its_schema() {
        let all = "q0.f0=Ada&q0.f1=7&q0.f2=0.5&q0.f3=on&q0.f4=1&q0.f5.o0=on&q0.f5.o2=on&q0.f6=a@b.example&q0.f7=https://a.example/&q0.f8=2026-07-28&q0.f9=2026-07-28T12:30";
        assert_eq!(
            read(all).unwrap(),
            json!({"name": "Ada", "count": 7, "share": 0.5, "sure": true, "size": "l", "tags": ["a", "c"], "mail": "a@b.example",
                "site": "https://a.example/", "day": "2026-07-28", "at": "2026-07-28T12:30:00Z"})
        );
        let least = "q0.f0=Ada&q0.f1=1&q0.f5.o1=on&q0.f6=a@b";
        assert_eq!(
            read(least).unwrap(),
            json!({"name": "Ada", "count": 1, "sure": false, "tags": ["b"], "mail": "a@b"})
        );
    }

    #[test]
    fn each_field_that_does_not_fit_is_named() {
        for (form, named) in [
            ("q0.f0=Ada&q0.f1=1&q0.f5.o1=on", "q0.f6"),
            ("q0.f0=A&q0.f1=1&q0.f5.o1=on&q0.f6=a@b", "q0.f0"),
            ("q0.f0=Adelaide&q0.f1=1&q0.f5.o1=on&q0.f6=a@b", "q0.f0"),
            ("q0.f0=Ada&q0.f1=1.5&q0.f5.o1=on&q0.f6=a@b", "q0.f1"),
            ("q0.f0=Ada&q0.f1=10&q0.f5.o1=on&q0.f6=a@b", "q0.f1"),
            ("q0.f0=Ada&q0.f1=1&q0.f2=NaN&q0.f5.o1=on&q0.f6=a@b", "q0.f2"),
            ("q0.f0=Ada&q0.f1=1&q0.f4=2&q0.f5.o1=on&q0.f6=a@b", "q0.f4"),
            ("q0.f0=Ada&q0.f1=1&q0.f6=a@b", "q0.f5"),
            ("q0.f0=Ada&q0.f1=1&q0.f5.o0=on&q0.f5.o1=on&q0.f5.o2=on&q0.f6=a@b", "q0.f5"),
            ("q0.f0=Ada&q0.f1=1&q0.f5.o1=on&q0.f6=ab", "q0.f6"),
            ("q0.f0=Ada&q0.f1=1&q0.f5.o1=on&q0.f6=a@b&q0.f7=x", "q0.f7"),
            ("q0.f0=Ada&q0.f1=1&q0.f5.o1=on&q0.f6=a@b&q0.f8=2026-13-01", "q0.f8"),
            ("q0.f0=Ada&q0.f1=1&q0.f5.o1=on&q0.f6=a@b&q0.f9=2026-07-28T24:00", "q0.f9"),
        ] {
            let errors = read(form).unwrap_err();
            assert_eq!(errors.keys().collect::<Vec<_>>(), [named], "{form}");
        }
    }

    #[test]
    fn a_form_that_is_too_large_or_of_unknown_fields_has_none() {
        let many = |fields: usize, about: Value| {
            let properties: Map<String, Value> =
                (0..fields).map(|n| (format!("p{n}"), about.clone())).collect();
            json!({"properties": properties})
        };
        let text = json!({"type": "string"});
        assert_eq!(fields(0, &many(40, text.clone())).unwrap().len(), 40);
        assert!(fields(0, &many(41, text)).is_none());
        assert!(fields(0, &many(1, json!({"type": "object"}))).is_none());
        let choices = |count: usize| json!({"type": "string", "enum": vec!["x"; count]});
        assert!(fields(0, &many(1, choices(200))).is_some());
        assert!(fields(0, &many(1, choices(201))).is_none());
        assert!(fields(0, &many(2, choices(200))).is_some());
        assert!(fields(0, &many(3, choices(200))).is_none());
        assert!(fields(0, &many(1, json!({"type": "array", "items": {"type": "string"}}))).is_none());
    }
}
