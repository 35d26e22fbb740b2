//! Resources, prompts and completion: each request goes to the app that owns the URI or the name.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CompleteRequestParams, CompleteResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
        ReadResourceRequestParams, ReadResourceResponse, Reference,
    },
    service::RequestContext,
};
use serde_json::json;

use super::{Gateway, stamp};
use crate::{AppEntry, Snapshot, names::clipped};

/// An app that may own a URI, and the URI as that app knows it.
pub(super) struct Route {
    pub(super) owner: AppEntry,
    pub(super) uri: String,
}

impl Gateway {
    pub(super) async fn read(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri.clone();
        let routes = routes(&self.shared.registry.snapshot(), &uri);
        for route in routes {
            let mut params = params.clone();
            params.uri.clone_from(&route.uri);
            let _open = route.owner.open.token();
            match route.owner.app.read_resource(params, context.clone()).await {
                Ok(mut response) => {
                    match &mut response {
                        ReadResourceResponse::Complete(result) => {
                            result.cache_scope.get_or_insert(rmcp::model::CacheScope::Private);
                            stamp::complete(&mut result.result_type);
                            self.stamp(&context, &mut result.meta);
                        }
                        ReadResourceResponse::InputRequired(result) => self.stamp(&context, &mut result.meta),
                        _ => {}
                    }
                    return Ok(response);
                }
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(not_found(&uri))
    }

    pub(super) async fn prompt(
        &self,
        mut params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let prompt = snapshot.prompt(&params.name).ok_or_else(|| {
            let message = format!("unknown prompt `{}`; see prompts/list", clipped(&params.name));
            ErrorData::invalid_params(message, None)
        })?;
        params.name.clone_from(&prompt.local);
        let _open = prompt.owner.open.token();
        let mut response = prompt.owner.app.get_prompt(params, context.clone()).await?;
        match &mut response {
            GetPromptResponse::Complete(result) => {
                stamp::complete(&mut result.result_type);
                self.stamp(&context, &mut result.meta);
            }
            GetPromptResponse::InputRequired(result) => self.stamp(&context, &mut result.meta),
            _ => {}
        }
        Ok(response)
    }

    pub(super) async fn completion(
        &self,
        mut params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let unknown = |what: &str, name: &str| {
            ErrorData::invalid_params(format!("unknown {what} `{}`", clipped(name)), None)
        };
        let owner = match &mut params.r#ref {
            Reference::Prompt(prompt) => {
                let known = snapshot.prompt(&prompt.name).ok_or_else(|| unknown("prompt", &prompt.name))?;
                prompt.name.clone_from(&known.local);
                known.owner.clone()
            }
            Reference::Resource(resource) => {
                let template =
                    snapshot.template(&resource.uri).map(|known| (known.local.clone(), known.owner.clone()));
                let route = || {
                    routes(&snapshot, &resource.uri).into_iter().next().map(|route| (route.uri, route.owner))
                };
                let (uri, owner) =
                    template.or_else(route).ok_or_else(|| unknown("resource", &resource.uri))?;
                resource.uri = uri;
                owner
            }
            _ => {
                return Err(ErrorData::invalid_params(
                    "unknown kind of reference; use ref/prompt or ref/resource",
                    None,
                ));
            }
        };
        if owner.app.catalog().capabilities.completions.is_none() {
            return Ok(CompleteResult::default());
        }
        let _open = owner.open.token();
        let mut result = owner.app.complete(params, context.clone()).await?;
        stamp::complete(&mut result.result_type);
        self.stamp(&context, &mut result.meta);
        Ok(result)
    }
}

/// The apps that may own `uri`, likeliest first: a listed resource, a matching template, then any app with resources of
/// that scheme (servers need not list all they have).
pub(super) fn routes(snapshot: &Snapshot, uri: &str) -> Vec<Route> {
    if let Some(known) = snapshot.resource(uri) {
        return vec![Route { owner: known.owner.clone(), uri: known.local.clone() }];
    }
    let mut routes: Vec<Route> = Vec::new();
    let mut add = |owner: &AppEntry, uri: &str| {
        if !routes.iter().any(|route| route.owner.id == owner.id && route.uri == uri) {
            routes.push(Route { owner: owner.clone(), uri: uri.to_owned() });
        }
    };
    for template in &snapshot.templates {
        let prefix = template.key.len() - template.local.len();
        if let Some(local) = uri.get(prefix..)
            && uri.starts_with(&template.key[..prefix])
            && matches_template(&template.local, local)
        {
            add(&template.owner, local);
        }
    }
    for app in &snapshot.apps {
        let own = uri
            .strip_prefix(&*app.id)
            .and_then(|rest| rest.strip_prefix(':'))
            .filter(|rest| rest.contains(':'));
        if let Some(own) = own {
            add(app, own);
        }
    }
    let scheme = |text: &str| text.split_once(':').map(|(scheme, _)| scheme.to_owned());
    let wanted = scheme(uri);
    for resource in snapshot.resources.iter().filter(|resource| scheme(&resource.local) == wanted) {
        add(&resource.owner, uri);
    }
    routes
}

/// Whether a URI can come from an RFC 6570 template: literal parts must appear in order, expressions stand for any text.
fn matches_template(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut open = false;
    let mut pattern = template;
    while !pattern.is_empty() {
        let (literal, after) = match pattern.find('{') {
            Some(at) => match pattern[at..].find('}') {
                Some(end) => (&pattern[..at], Some(&pattern[at + end + 1..])),
                None => (pattern, None),
            },
            None => (pattern, None),
        };
        if !literal.is_empty() {
            let last = after.is_none();
            let at = match (open, last) {
                (true, true) => {
                    rest.len().checked_sub(literal.len()).filter(|at| rest[..].ends_with(literal) && *at > 0)
                }
                (true, false) => rest.find(literal),
                (false, _) => rest.starts_with(literal).then_some(0),
            };
            let Some(at) = at else { return false };
            rest = &rest[at + literal.len()..];
            open = false;
        }
        match after {
            Some(after) => {
                open = true;
                pattern = after;
            }
            None => break,
        }
    }
    open || rest.is_empty()
}

fn is_not_found(error: &ErrorData) -> bool {
    error.code == ErrorCode::RESOURCE_NOT_FOUND
        || (error.code == ErrorCode::INVALID_PARAMS
            && error.data.as_ref().is_some_and(|data| data.get("uri").is_some()))
}

pub(super) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(
        format!("resource `{}` does not exist", clipped(uri)),
        Some(json!({"uri": uri})),
    )
}

#[cfg(test)]
mod tests {
    use super::matches_template;

    #[test]
    fn a_template_matches_what_it_can_expand_to() {
        for (template, uri, fits) in [
            ("crm://users/{id}", "crm://users/7", true),
            ("crm://users/{id}", "crm://accounts/7", false),
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123/other", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("x://{a}-{b}", "x://1-2", true),
            ("x://fixed", "x://fixed", true),
            ("x://fixed", "x://fixed/more", false),
            ("x://{a}/end", "x:///", false),
        ] {
            assert_eq!(matches_template(template, uri), fits, "{template} {uri}");
        }
    }
}
