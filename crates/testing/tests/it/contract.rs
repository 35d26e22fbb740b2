//! The table of the contract's names is complete: every row has a doctest, and every name of the testing package is in it.

use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../src/contract.md");

/// The names of the testing package, contract §C: operations, options and fields.
const NAMES: &str = "
    test describe skip only beforeAll afterAll use server port transport auth logLevel env startupTimeout baseUrl
    tools list call resources listTemplates read prompts get isConnected sessionId serverInfo protocolVersion capabilities
    hasCapability authenticate disconnect raw request notify sendRaw logs all filter search clear trace last
    ToolResult isSuccess isError text json image content error ResourceContent blob mimeType uri PromptResult messages
    description PromptMessage role JsonRpcRequest JsonRpcNotification JsonRpcResponse RequestTrace
    add MockOptions tool toolError resource MockHandle callCount calls remove response delay failMethod
    passthrough modify mock createToken createExpiredToken createInvalidToken users getJwks getIssuer getAudience
    TokenOptions sub scopes email name claims expiresIn info createClient ClientOptions token restart getLogs clearLogs
    MockOAuthServer autoApprove testUser clientId clientSecret validRedirectUris accessTokenTtlSeconds refreshTokenTtlSeconds
    debug MockTestUser picture start stop setAutoApprove setTestUser addValidRedirectUri clearStoredTokens getTokenFactory
    anonymous authorize userinfo issuer jwksUrl MockCimdServer registerClient getClientId removeClient registerInvalidDocument
    registerFetchError MockCimdClientOptions path redirectUris tokenEndpointAuthMethod grantTypes responseTypes clientUri logoUri
    scope contacts TokenFactory TokenFactoryOptions audience expiresInSeconds createTestToken createAdminToken createUserToken
    createAnonymousToken createTokenWithInvalidSignature getPublicJwks httpMock interceptor post put delete any UrlMatcher
    HttpMockOptions url method headers body times HttpResponse status statusText allowPassthrough assertDone pending restore
    waitForCalls HttpCall httpResponse html notFound unauthorized forbidden serverError delayed mockResponse success toolResult
    toolsList resourcesList resourceRead errors methodNotFound resourceNotFound invalidParams inputSchema
    toContainTool toBeSuccessful toBeError toHaveTextContent toHaveImageContent toHaveResourceContent toHaveMimeType
    toContainResource toContainResourceTemplate toContainPrompt toHaveMessages toHaveRole toContainText toBeValidJsonRpc
    toHaveResult toHaveError toHaveErrorCode
";

/// The cells of each row: the contract's name, and the name in Rust.
fn rows() -> Vec<(&'static str, &'static str)> {
    let cells = |line: &'static str| {
        let (contract, rust) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")?;
        Some((contract, rust))
    };
    TABLE.lines().filter_map(cells).collect()
}

#[test]
fn every_row_has_a_doctest_and_every_doctest_a_row() {
    let rows: BTreeSet<&str> = rows().into_iter().map(|(contract, _)| contract).collect();
    let mut tried = BTreeSet::new();
    let mut lines = TABLE.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```rust") {
            assert!(!line.contains("ignore") && !line.contains("no_run"), "{line}");
            let name =
                lines.next().unwrap().strip_prefix("// ").expect("a doctest begins with the name of its row");
            assert!(tried.insert(name), "{name} is tried twice");
        }
    }
    assert!(rows.len() >= 120, "{}", rows.len());
    assert_eq!(rows, tried);
}

#[test]
fn the_table_has_every_name_of_the_contract() {
    let split =
        |text: &'static str| text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let there: BTreeSet<&str> = rows().into_iter().flat_map(|(contract, _)| split(contract)).collect();
    let missing: Vec<&str> = NAMES.split_whitespace().filter(|name| !there.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
