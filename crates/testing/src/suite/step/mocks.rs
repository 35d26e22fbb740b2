//! Responses in place of the server's.

use std::time::Duration;

use serde_json::json;

use super::StepRunner;
use crate::{
    client::{MockOptions, mock_response},
    protocol::{RpcError, RpcResponse},
    suite::format::{MockEntry, MockError},
};

impl StepRunner<'_> {
    /// Adds a test's mocks.
    pub(in crate::suite) fn mock(&self, mocks: &[MockEntry]) -> Result<(), String> {
        for one in mocks {
            let response = self.variables.fill(&one.response.clone().unwrap_or_default())?;
            let mut options = match (&one.tool, &one.resource, &one.error) {
                (Some(tool), _, Some(error)) => {
                    MockOptions::new("tools/call", self.mocked_error(error)?).params(json!({"name": tool}))
                }
                (Some(tool), _, None) => MockOptions::tool(tool, response),
                (None, Some(uri), None) => MockOptions::resource(uri, response),
                (None, uri, error) => {
                    let answer = match error {
                        Some(error) => self.mocked_error(error)?,
                        None => mock_response::success(response),
                    };
                    let options = MockOptions::new(one.method.as_deref().unwrap_or("resources/read"), answer);
                    uri.iter().fold(options, |options, uri| options.params(json!({"uri": uri})))
                }
            };
            if let Some(params) = &one.params {
                options = options.params(self.variables.fill(params)?);
            }
            if let Some(times) = one.times {
                options = options.times(times);
            }
            self.mcp.mock().add(options.delay(Duration::from_millis(one.delay_ms.unwrap_or(0))));
        }
        Ok(())
    }

    fn mocked_error(&self, error: &MockError) -> Result<RpcResponse, String> {
        let data = error.data.as_ref().map(|data| self.variables.fill(data)).transpose()?;
        Ok(RpcResponse::failure(&RpcError { code: error.code, message: error.message.clone(), data }))
    }
}
