//! Tools for users.

use serde_json::json;

use crate::dataset::{State, TODAY, User, find_mut};
use crate::schema::{
    ROLES, by_id, choice, email, id, list_input, object, page_of, plain, record, text, user,
};
use crate::tool::{Effect, Failure, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    let active = json!({ "type": "boolean", "description": "Only users who can, or cannot, sign in" });
    vec![
        Spec {
            name: "users_list",
            title: "List users",
            effect: Effect::Read,
            description: "List users, page by page, with name, e-mail address and role. Can be narrowed to one account, one role, or active users.",
            input: list_input(
                json!({
                    "accountId": id("account", "acc_0001"),
                    "role": choice("Only users with this role", &ROLES),
                    "active": active,
                }),
                &[],
            ),
            output: page_of(user()),
            examples: &[(
                "E-mail addresses of all active administrators",
                "const page = await callTool('crm:users_list', { role: 'admin', active: true, limit: 100 });\nreturn page.items.map((user) => user.email);",
            )],
            run: |state, args| {
                page(&state.users, args, |user| {
                    args.matches("accountId", &user.account_id)
                        && args.matches("role", &user.role)
                        && args.flag("active").is_none_or(|active| active == user.active)
                })
            },
        },
        Spec {
            name: "users_get",
            title: "Get a user",
            effect: Effect::Read,
            description: "Get one user by id: name, e-mail address, role, account and whether the user is active.",
            input: by_id("user", "usr_0001"),
            output: user(),
            examples: &[],
            run: |state, args| state.user(args.text("id")).map(row),
        },
        Spec {
            name: "users_search",
            title: "Search users",
            effect: Effect::Read,
            description: "Search users by part of their name or e-mail address. Finds a person when the id is not known.",
            input: list_input(
                json!({ "query": text("Words in the name or the e-mail address", "ada") }),
                &["query"],
            ),
            output: page_of(user()),
            examples: &[(
                "Find a person and the company they work for",
                "const found = await callTool('crm:users_search', { query: 'lindqvist' });\nconst user = found.items[0];\nconst account = await callTool('crm:accounts_get', { id: user.accountId });\nreturn { user: user.name, company: account.name };",
            )],
            run: |state, args| page(&state.users, args, |user| args.finds(&[&user.name, &user.email])),
        },
        Spec {
            name: "users_create",
            title: "Create a user",
            effect: Effect::Create,
            description: "Create a new user in an account, that is, invite or add a person. Returns the user with its new id. The e-mail address must not be taken.",
            input: object(
                json!({
                    "accountId": id("account", "acc_0001"),
                    "name": text("Full name", "Noa Berg"),
                    "email": email("E-mail address, not used by another user", "noa.berg@northwind.example"),
                    "role": choice("What the user may do; member if left out", &ROLES),
                }),
                &["accountId", "name", "email"],
            ),
            output: user(),
            examples: &[(
                "Add a colleague to the account of an existing user",
                "const boss = await callTool('crm:users_get', { id: 'usr_0001' });\nreturn await callTool('crm:users_create', { accountId: boss.accountId, name: 'Mira Falk', email: 'mira.falk@northwind.example', role: 'viewer' });",
            )],
            run: |state, args| {
                state.account(args.text("accountId"))?;
                email_is_free(state, args.text("email"), None)?;
                let id = state.next_id("usr");
                let user = User {
                    id: id.clone(),
                    account_id: args.owned("accountId"),
                    name: args.owned("name"),
                    email: args.owned("email"),
                    role: args.optional("role").unwrap_or("member").to_owned(),
                    active: true,
                    created_at: TODAY.to_owned(),
                };
                let answer = row(&user);
                state.users.insert(id, user);
                Ok(answer)
            },
        },
        Spec {
            name: "users_update",
            title: "Update a user",
            effect: Effect::Update,
            description: "Update a user: change the name, e-mail address or role. Fields left out stay as they are. Returns the changed user.",
            input: object(
                json!({
                    "id": id("user", "usr_0002"),
                    "name": text("New full name", "Boris Okafor-Lang"),
                    "email": email("New e-mail address", "boris@northwind.example"),
                    "role": choice("New role", &ROLES),
                }),
                &["id"],
            ),
            output: user(),
            examples: &[],
            run: |state, args| {
                state.user(args.text("id"))?;
                if let Some(email) = args.optional("email") {
                    email_is_free(state, email, args.optional("id"))?;
                }
                let user = find_mut(&mut state.users, "user", args.text("id"))?;
                args.set("name", &mut user.name);
                args.set("email", &mut user.email);
                args.set("role", &mut user.role);
                Ok(row(user))
            },
        },
        Spec {
            name: "users_set_active",
            title: "Activate or deactivate a user",
            effect: Effect::Update,
            description: "Activate or deactivate a user. A deactivated user is locked out and cannot sign in, but is kept.",
            input: object(
                json!({
                    "id": id("user", "usr_0003"),
                    "active": { "type": "boolean", "description": "Whether the user may sign in", "examples": [false] },
                }),
                &["id", "active"],
            ),
            output: user(),
            examples: &[],
            run: |state, args| {
                let user = find_mut(&mut state.users, "user", args.text("id"))?;
                user.active = args.flag("active").unwrap_or(user.active);
                Ok(row(user))
            },
        },
        Spec {
            name: "users_delete",
            title: "Delete a user",
            effect: Effect::Destroy,
            description: "Delete a user for good. Refused while the user has orders or tickets; deactivate the user instead.",
            input: by_id("user", "usr_0008"),
            output: record(json!({
                "id": plain("Id of the user who was deleted"),
                "deleted": { "type": "boolean", "const": true, "description": "Always true" },
            })),
            examples: &[],
            run: |state, args| {
                let id = state.user(args.text("id"))?.id.clone();
                let orders = state.orders.values().filter(|order| order.user_id == id).count();
                let tickets = state.tickets.values().filter(|ticket| ticket.requester_id == id).count();
                if orders + tickets > 0 {
                    return Failure::invalid(format!(
                        "The user {id} has {orders} orders and {tickets} tickets and cannot be deleted. Use users_set_active to lock the user out."
                    ));
                }
                state.users.remove(&id);
                Ok(json!({ "id": id, "deleted": true }))
            },
        },
    ]
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
