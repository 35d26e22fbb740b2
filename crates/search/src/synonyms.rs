//! Words of a query that also find other words: a constant table, which `parsed_query` reads.
//!
//! Few and safe on purpose: eager lists cost more than they find. The texts of tools are in `document` and `fields`.

/// Groups of stems; a word finds the others of its group at half weight.
const GROUPS: &[&[&str]] = &[
    &["creat", "add", "new", "make"],
    &["delet", "remov", "destroy", "erase"],
    &["updat", "edit", "modifi", "chang"],
    &["get", "fetch", "retriev", "read", "show"],
    &["find", "search", "lookup", "locat", "look"],
    &["list", "enumer", "brows"],
    &["send", "post", "deliv"],
    &["pr", "prs", "pull"],
    &["repo", "repositori"],
    &["doc", "document"],
    &["mail", "email"],
    &["pictur", "imag", "photo"],
    &["car", "vehicl"],
    &["compani", "busi", "firm"],
    &["buy", "purchas"],
    &["cost", "price", "spend"],
    &["film", "movi"],
    &["flight", "airlin"],
    &["folder", "directori"],
    &["begin", "start"],
    &["db", "databas"],
    &["config", "configur", "set"],
    &["calcul", "comput"],
    &["ticket", "issu", "bug", "defect"],
    &["meet", "appoint", "event"],
    &["notif", "notifi", "alert"],
    &["msg", "messag"],
    &["info", "inform", "detail"],
    &["auth", "authent"],
    &["convert", "transform", "translat"],
    &["invoic", "bill"],
    &["ship", "dispatch"],
    &["calendar", "diari", "agenda"],
    &["coupon", "voucher", "discount"],
    &["disput", "chargeback"],
    &["screenshot", "captur"],
    &["click", "press", "tap"],
    &["task", "todo", "remind"],
    &["url", "link"],
    &["inventori", "stock"],
    &["client", "custom"],
    &["comment", "note"],
    &["disabl", "deactiv", "block"],
    &["revenu", "earn", "incom"],
    &["statist", "stat", "metric"],
    &["resolv", "solv", "fix"],
    &["page", "websit", "webpag", "site"],
    &["employe", "staff", "colleagu"],
    &["refund", "reimburs"],
];

/// The other stems of a stem's group.
pub(crate) fn of(stem: &str) -> impl Iterator<Item = &'static str> {
    let group = GROUPS.iter().find(|group| group.contains(&stem));
    let stem = stem.to_owned();
    group.into_iter().flat_map(|group| group.iter().copied()).filter(move |other| *other != stem)
}
