//! Tools for users.

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    answer::{Failure, Page, check_email, check_text, contains_words, default_limit, hints, matches, page},
    app::App,
    dataset::{Role, State, TODAY, User, find_mut, word},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListUsers {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: Option<String>,
    /// Only users with this role
    role: Option<Role>,
    /// Only users who can, or cannot, sign in
    active: Option<bool>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetUser {
    /// Id of the user, such as usr_0001
    #[schemars(example = &"usr_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SearchUsers {
    /// Words in the name or the e-mail address
    #[schemars(length(min = 1, max = 2000), example = &"ada")]
    query: String,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateUser {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: String,
    /// Full name
    #[schemars(length(min = 1, max = 2000), example = &"Noa Berg")]
    name: String,
    /// E-mail address, not used by another user
    #[schemars(email, example = &"noa.berg@northwind.example")]
    email: String,
    /// What the user may do; member if left out
    role: Option<Role>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateUser {
    /// Id of the user, such as usr_0002
    #[schemars(example = &"usr_0002")]
    id: String,
    /// New full name
    #[schemars(length(min = 1, max = 2000), example = &"Boris Okafor-Lang")]
    name: Option<String>,
    /// New e-mail address
    #[schemars(email, example = &"boris@northwind.example")]
    email: Option<String>,
    /// New role
    role: Option<Role>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SetUserActive {
    /// Id of the user, such as usr_0003
    #[schemars(example = &"usr_0003")]
    id: String,
    /// Whether the user may sign in
    #[schemars(example = false)]
    active: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeleteUser {
    /// Id of the user, such as usr_0008
    #[schemars(example = &"usr_0008")]
    id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct DeletedUser {
    /// Id of the user who was deleted
    id: String,
    /// Always true
    #[schemars(extend("const" = true))]
    deleted: bool,
}

#[tool_router(router = users, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List users",
        description = "List users, page by page, with name, e-mail address and role. Can be narrowed to one account, one role, or active users.",
        annotations(
            title = "List users",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[(
            "E-mail addresses of all active administrators",
            "const page = await callTool('crm:users_list', { role: 'admin', active: true, limit: 100 });\nreturn page.items.map((user) => user.email);",
        )])
    )]
    fn users_list(&self, Parameters(input): Parameters<ListUsers>) -> Result<Json<Page<User>>, Failure> {
        self.with(|state| {
            page(&state.users, input.limit, input.cursor.as_deref(), |user| {
                matches(input.account_id.as_ref(), &user.account_id)
                    && matches(input.role.as_ref(), &user.role)
                    && input.active.is_none_or(|active| active == user.active)
            })
        })
    }

    #[tool(
        title = "Get a user",
        description = "Get one user by id: name, e-mail address, role, account and whether the user is active.",
        annotations(
            title = "Get a user",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[])
    )]
    fn users_get(&self, Parameters(input): Parameters<GetUser>) -> Result<Json<User>, Failure> {
        self.with(|state| state.user(&input.id).cloned())
    }

    #[tool(
        title = "Search users",
        description = "Search users by part of their name or e-mail address. Finds a person when the id is not known.",
        annotations(
            title = "Search users",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[(
            "Find a person and the company they work for",
            "const found = await callTool('crm:users_search', { query: 'lindqvist' });\nconst user = found.items[0];\nconst account = await callTool('crm:accounts_get', { id: user.accountId });\nreturn { user: user.name, company: account.name };",
        )])
    )]
    fn users_search(&self, Parameters(input): Parameters<SearchUsers>) -> Result<Json<Page<User>>, Failure> {
        self.with(|state| {
            check_text("query", &input.query)?;
            page(&state.users, input.limit, input.cursor.as_deref(), |user| {
                contains_words(&input.query, &[&user.name, &user.email])
            })
        })
    }

    #[tool(
        title = "Create a user",
        description = "Create a new user in an account, that is, invite or add a person. Returns the user with its new id. The e-mail address must not be taken.",
        annotations(
            title = "Create a user",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[(
            "Add a colleague to the account of an existing user",
            "const boss = await callTool('crm:users_get', { id: 'usr_0001' });\nreturn await callTool('crm:users_create', { accountId: boss.accountId, name: 'Mira Falk', email: 'mira.falk@northwind.example', role: 'viewer' });",
        )])
    )]
    fn users_create(&self, Parameters(input): Parameters<CreateUser>) -> Result<Json<User>, Failure> {
        self.with(|state| {
            let name = check_text("name", &input.name)?;
            let email = check_email("email", &input.email)?;
            state.account(&input.account_id)?;
            email_is_free(state, &email, None)?;
            let user = User {
                id: state.next_id("usr"),
                account_id: input.account_id,
                name,
                email,
                role: word(input.role.unwrap_or(Role::Member)),
                active: true,
                created_at: TODAY.to_owned(),
            };
            state.users.insert(user.id.clone(), user.clone());
            Ok(user)
        })
    }

    #[tool(
        title = "Update a user",
        description = "Update a user: change the name, e-mail address or role. Fields left out stay as they are. Returns the changed user.",
        annotations(
            title = "Update a user",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[])
    )]
    fn users_update(&self, Parameters(input): Parameters<UpdateUser>) -> Result<Json<User>, Failure> {
        self.with(|state| {
            let name = input.name.map(|name| check_text("name", &name)).transpose()?;
            let email = input.email.map(|email| check_email("email", &email)).transpose()?;
            state.user(&input.id)?;
            if let Some(email) = &email {
                email_is_free(state, email, Some(&input.id))?;
            }
            let user = find_mut(&mut state.users, "user", &input.id)?;
            user.name = name.unwrap_or(user.name.clone());
            user.email = email.unwrap_or(user.email.clone());
            user.role = input.role.map_or(user.role.clone(), word);
            Ok(user.clone())
        })
    }

    #[tool(
        title = "Activate or deactivate a user",
        description = "Activate or deactivate a user. A deactivated user is locked out and cannot sign in, but is kept.",
        annotations(
            title = "Activate or deactivate a user",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[])
    )]
    fn users_set_active(&self, Parameters(input): Parameters<SetUserActive>) -> Result<Json<User>, Failure> {
        self.with(|state| {
            let user = find_mut(&mut state.users, "user", &input.id)?;
            user.active = input.active;
            Ok(user.clone())
        })
    }

    #[tool(
        title = "Delete a user",
        description = "Delete a user for good. Refused while the user has orders or tickets; deactivate the user instead.",
        annotations(
            title = "Delete a user",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:delete", &[])
    )]
    fn users_delete(&self, Parameters(input): Parameters<DeleteUser>) -> Result<Json<DeletedUser>, Failure> {
        self.with(|state| {
            let id = state.user(&input.id)?.id.clone();
            let orders = state.orders.values().filter(|order| order.user_id == id).count();
            let tickets = state.tickets.values().filter(|ticket| ticket.requester_id == id).count();
            if orders + tickets > 0 {
                return Failure::invalid(format!(
                    "The user {id} has {orders} orders and {tickets} tickets and cannot be deleted. Use users_set_active to lock the user out."
                ));
            }
            state.users.remove(&id);
            Ok(DeletedUser { id, deleted: true })
        })
    }
}

fn email_is_free(state: &State, email: &str, except: Option<&str>) -> Result<(), Failure> {
    let taken = state
        .users
        .values()
        .find(|user| user.email.eq_ignore_ascii_case(email) && except != Some(user.id.as_str()));
    match taken {
        Some(user) => {
            Failure::invalid(format!("The e-mail address {email} is taken by the user {}.", user.id))
        }
        None => Ok(()),
    }
}
