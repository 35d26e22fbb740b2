//! The rows every data set begins with. Nothing here is drawn at random.

use super::{Account, Comment, Invoice, Item, Order, Product, State, Ticket, User, plus_days};

/// Name, e-mail domain, industry, plan, status, country.
const ACCOUNTS: [[&str; 6]; 8] = [
    ["Northwind Traders", "northwind.example", "retail", "enterprise", "active", "US"],
    ["Contoso Labs", "contoso.example", "software", "team", "active", "DE"],
    ["Fabrikam Steel", "fabrikam.example", "manufacturing", "enterprise", "active", "FR"],
    ["Tailspin Toys", "tailspin.example", "retail", "free", "trial", "GB"],
    ["Blue Yonder Air", "blueyonder.example", "travel", "team", "active", "NL"],
    ["Litware Books", "litware.example", "media", "free", "churned", "US"],
    ["Adatum Health", "adatum.example", "healthcare", "enterprise", "active", "SE"],
    ["Wingtip Design", "wingtip.example", "media", "team", "trial", "ES"],
];

const FIRST: [&str; 24] = [
    "Ada", "Boris", "Clara", "Dmitri", "Elena", "Farid", "Grace", "Hugo", "Ingrid", "Jonas", "Keiko", "Liam",
    "Mara", "Nadia", "Oscar", "Priya", "Quentin", "Rosa", "Sven", "Tomas", "Uma", "Viktor", "Wanda", "Yusuf",
];

const LAST: [&str; 24] = [
    "Lindqvist",
    "Okafor",
    "Moreau",
    "Petrov",
    "Ruiz",
    "Haddad",
    "Nakamura",
    "Weber",
    "Solberg",
    "Keller",
    "Tanaka",
    "Byrne",
    "Novak",
    "Rossi",
    "Lind",
    "Raman",
    "Dubois",
    "Marin",
    "Eriksen",
    "Horak",
    "Patel",
    "Orlov",
    "Zielinska",
    "Demir",
];

/// Name, category, price in cents, stock.
const PRODUCTS: [(&str, &str, u64, u64); 10] = [
    ("Team seat, yearly", "licence", 18_000, 1000),
    ("Enterprise seat, yearly", "licence", 42_000, 1000),
    ("Onboarding workshop", "service", 150_000, 12),
    ("Priority support, yearly", "service", 96_000, 200),
    ("Barcode scanner", "hardware", 12_900, 34),
    ("Receipt printer", "hardware", 21_500, 18),
    ("Card terminal", "hardware", 8_900, 0),
    ("Data import", "service", 45_000, 40),
    ("Analytics add-on", "licence", 24_000, 1000),
    ("Label roll, box of 12", "supplies", 3_600, 260),
];

const ORDER_STATUS: [&str; 5] = ["pending", "paid", "shipped", "delivered", "cancelled"];

/// Subject, body, status, priority.
const TICKETS: [[&str; 4]; 16] = [
    ["Cannot sign in", "The sign-in page says my password is wrong since this morning.", "open", "high"],
    ["Invoice shows the wrong address", "Please print our new address on the invoice.", "open", "normal"],
    ["Scanner does not pair", "The barcode scanner blinks red and never pairs.", "pending", "normal"],
    ["Export is empty", "The monthly export arrives with headings only.", "open", "urgent"],
    ["How do I add a colleague?", "I could not find where to invite a user.", "closed", "low"],
    ["Order arrived damaged", "Two label rolls were wet when they arrived.", "open", "high"],
    ["Refund for a cancelled order", "We cancelled last week and wait for the refund.", "pending", "high"],
    ["Slow reports", "Reports take more than a minute to open.", "open", "normal"],
    ["Change of plan", "We would like to move to the enterprise plan.", "closed", "normal"],
    ["Two-factor codes are rejected", "Codes from my phone are refused.", "open", "urgent"],
    ["Question about the price of seats", "Is there a discount above fifty seats?", "closed", "low"],
    ["Printer prints blank labels", "The receipt printer feeds but prints nothing.", "open", "normal"],
    ["API returns 500", "Creating an order through the API fails.", "pending", "urgent"],
    ["Close my account", "We stop our business at the end of the month.", "open", "low"],
    ["Missing card terminal", "One of three terminals was not in the box.", "open", "high"],
    ["Language of e-mails", "E-mails arrive in English, we asked for Spanish.", "closed", "low"],
];

/// The one order that was delivered and never billed.
const NOT_INVOICED: usize = 28;

const AGENTS: [&str; 3] = ["noor@support.example", "pavel@support.example", "sofia@support.example"];

pub(super) fn state() -> State {
    let mut state = State::default();
    accounts_and_users(&mut state);
    for (name, category, price_cents, stock) in PRODUCTS {
        let id = state.next_id("prd");
        let product = Product {
            id: id.clone(),
            name: name.into(),
            category: category.into(),
            price_cents,
            currency: "EUR".into(),
            stock,
        };
        state.products.insert(id, product);
    }
    orders_and_invoices(&mut state);
    tickets(&mut state);
    state
}

fn accounts_and_users(state: &mut State) {
    for (n, [name, domain, industry, plan, status, country]) in ACCOUNTS.into_iter().enumerate() {
        let account_id = state.next_id("acc");
        let created_at = plus_days("2024-01-15", 61 * n as u32);
        for member in 0..3 {
            let (first, last) = (FIRST[3 * n + member], LAST[3 * n + member]);
            let id = state.next_id("usr");
            let user = User {
                id: id.clone(),
                account_id: account_id.clone(),
                name: format!("{first} {last}"),
                email: format!("{}.{}@{domain}", first.to_lowercase(), last.to_lowercase()),
                role: ["admin", "billing", "member"][member].into(),
                active: status != "churned" && (n + member) % 7 != 6,
                created_at: plus_days(&created_at, 9 * member as u32),
            };
            state.users.insert(id, user);
        }
        let account = Account {
            id: account_id.clone(),
            name: name.into(),
            industry: industry.into(),
            plan: plan.into(),
            status: status.into(),
            country: country.into(),
            created_at,
        };
        state.accounts.insert(account_id, account);
    }
}

fn orders_and_invoices(state: &mut State) {
    let users: Vec<User> = state.users.values().cloned().collect();
    let products: Vec<Product> = state.products.values().cloned().collect();
    for n in 0..30_usize {
        let user = &users[(n * 10) % users.len()];
        let items: Vec<Item> = (0..=n % 3)
            .map(|line| {
                let product = &products[(n + 3 * line) % products.len()];
                Item {
                    product_id: product.id.clone(),
                    quantity: ((n + line) % 4 + 1) as u64,
                    unit_price_cents: product.price_cents,
                }
            })
            .collect();
        let total_cents = items.iter().map(|item| item.quantity * item.unit_price_cents).sum();
        let id = state.next_id("ord");
        let status = ORDER_STATUS[n % ORDER_STATUS.len()];
        let created_at = plus_days("2026-01-02", 3 * n as u32 - n as u32 / 8);
        let order = Order {
            id: id.clone(),
            account_id: user.account_id.clone(),
            user_id: user.id.clone(),
            status: status.into(),
            items,
            total_cents,
            currency: "EUR".into(),
            created_at,
        };
        if status != "cancelled" && n != NOT_INVOICED {
            invoice(state, &order, n);
        }
        state.orders.insert(id, order);
    }
}

fn invoice(state: &mut State, order: &Order, n: usize) {
    let id = state.next_id("inv");
    let due_at = plus_days(&order.created_at, 30);
    let paid = order.status != "pending";
    let status = match (paid, n % 2, due_at.as_str() < super::TODAY) {
        (true, ..) => "paid",
        (false, _, true) => "overdue",
        (false, 0, false) => "sent",
        (false, ..) => "draft",
    };
    let invoice = Invoice {
        id: id.clone(),
        account_id: order.account_id.clone(),
        order_id: order.id.clone(),
        status: status.into(),
        amount_cents: order.total_cents,
        currency: order.currency.clone(),
        issued_at: order.created_at.clone(),
        due_at,
        paid_at: paid.then(|| plus_days(&order.created_at, 2)),
    };
    state.invoices.insert(id, invoice);
}

fn tickets(state: &mut State) {
    let users: Vec<User> = state.users.values().cloned().collect();
    for (n, [subject, body, status, priority]) in TICKETS.into_iter().enumerate() {
        let requester = &users[(n * 7 + 1) % users.len()];
        let id = state.next_id("tkt");
        let created_at = plus_days("2026-02-20", 2 * n as u32);
        let assignee = (status != "open" || n % 2 == 0).then(|| AGENTS[n % AGENTS.len()].to_owned());
        let updated_at = plus_days(&created_at, 1);
        let comments = match (&assignee, status) {
            (Some(agent), "pending" | "closed") => vec![Comment {
                author: agent.clone(),
                text: "Thank you for writing to us, we are looking into it.".into(),
                created_at: updated_at.clone(),
            }],
            _ => Vec::new(),
        };
        let ticket = Ticket {
            id: id.clone(),
            account_id: requester.account_id.clone(),
            requester_id: requester.id.clone(),
            subject: subject.into(),
            body: body.into(),
            status: status.into(),
            priority: priority.into(),
            assignee,
            escalated: priority == "urgent" && n % 2 == 1,
            comments,
            created_at,
            updated_at,
        };
        state.tickets.insert(id, ticket);
    }
}
