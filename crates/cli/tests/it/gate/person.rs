//! A person with a browser in front of the login pages.

use std::collections::BTreeMap;

use reqwest::{Method, Url};

use super::{Answer, Gate, PASSWORD, form};

/// A person with a browser: keeps cookies, follows redirects, fills forms.
#[derive(Default)]
pub struct Person {
    pub cookies: BTreeMap<String, String>,
    /// User name to type; `ada` by default.
    pub name: Option<&'static str>,
    /// Password to type; [`PASSWORD`] by default.
    pub password: Option<&'static str>,
    /// Pages that were shown.
    pub pages: Vec<String>,
    /// Values of hidden fields that were seen.
    pub hidden: Vec<String>,
}

impl Person {
    async fn go(&mut self, gate: &Gate, method: Method, target: &str, body: String) -> Answer {
        let cookie =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let mut headers = vec![("cookie", cookie.as_str())];
        if method == Method::POST {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
            headers.push(("origin", &gate.public));
        }
        let answer = gate.send(method, target, &headers, body).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        self.pages.push(answer.body.clone());
        answer
    }

    /// Opens an address.
    pub async fn open(&mut self, gate: &Gate, target: &str) -> Answer {
        self.go(gate, Method::GET, target, String::new()).await
    }

    /// Opens an authorization request, logs in as `ada` and allows everything. Returns the redirect to the client.
    pub async fn authorize(&mut self, gate: &Gate, ask: &str) -> Url {
        let answer = self.open(gate, ask).await;
        self.finish(gate, answer).await
    }

    /// Continues from a response of the authorization.
    pub async fn finish(&mut self, gate: &Gate, mut answer: Answer) -> Url {
        for _ in 0..10 {
            let location = answer.header("location").to_owned();
            if !location.is_empty() {
                let next = Url::parse(&gate.public).unwrap().join(&location).unwrap();
                if !next.as_str().starts_with(&gate.public) {
                    return next;
                }
                answer = self.go(gate, Method::GET, next.as_str(), String::new()).await;
                continue;
            }
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer = self.submit(gate, &answer.body).await;
        }
        panic!("redirected ten times");
    }

    /// Fills in the form of a page, and sends it.
    pub async fn submit(&mut self, gate: &Gate, page: &str) -> Answer {
        let action = page
            .split_once("<form")
            .and_then(|(_, form)| attribute(form, "action"))
            .unwrap_or_else(|| panic!("{page}"));
        let mut fields = Vec::new();
        for input in page.split("<input").skip(1) {
            let input = input.split('>').next().unwrap();
            let name = attribute(input, "name").unwrap();
            let value = match name.as_str() {
                "username" => self.name.unwrap_or("ada").to_owned(),
                "password" => self.password.unwrap_or(PASSWORD).to_owned(),
                _ => attribute(input, "value").unwrap(),
            };
            if input.contains("hidden") {
                self.hidden.push(value.clone());
            }
            fields.push((name, value));
        }
        if page.contains("name=\"decision\"") {
            fields.push(("decision".to_owned(), "allow".to_owned()));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.go(gate, Method::POST, &action, form(&fields)).await
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
    Some(value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}
