//! The text of a new configuration.

use super::apps::NewApp;
use crate::write::yaml_app;

const HEAD: &str = "\
# Gatewright: MCP servers behind one address.
#
# gatewright serve               starts it; changes of this file apply while it runs
# gatewright check               checks this file
# gatewright connect cursor      puts the gateway into a client
# gatewright add NAME -- npx …   adds a server
#
# `${NAME}` is an environment variable, `${file:PATH}` the content of a file beside this one.

info: { name: gatewright, version: 1.0.0 }
";

const APPS: &str = "
# The MCP servers. Their tools are called <app>:<tool>.
apps:
";

const SAMPLE: &str = "\
  # A sample, until you have servers of your own: gatewright add files -- npx -y @modelcontextprotocol/server-filesystem .
  crm:
    builtin: crm
";

const FOOT: &str = "
# Without the next line, clients see four tools that find and run all others in code mode.
# codecall: { enabled: false }

# The address is http://127.0.0.1:3000/mcp. To change the port:
# http: { port: 3000 }
";

/// A configuration with these apps; those that cannot run are comments.
pub fn text(apps: &[NewApp]) -> String {
    let mut text = format!("{HEAD}{APPS}");
    if apps.iter().all(|app| app.blocked.is_some()) {
        text.push_str(SAMPLE);
    }
    for app in apps {
        let lines = yaml_app(&app.id, &app.keys, "  ");
        match &app.blocked {
            None => {
                text.push_str(&format!("  # From {}\n", one_line(&app.from)));
                if !app.ignored.is_empty() {
                    text.push_str(&format!(
                        "  # Left out, as it has no meaning here: {}\n",
                        one_line(&app.ignored.join(", "))
                    ));
                }
                text.push_str(&lines);
            }
            Some(reason) => {
                text.push_str(&format!(
                    "  # From {}; it cannot run yet: {}\n",
                    one_line(&app.from),
                    one_line(reason)
                ));
                for line in lines.lines() {
                    text.push_str(&format!("  #{}\n", line.strip_prefix(' ').unwrap_or(line)));
                }
            }
        }
    }
    text + FOOT
}

/// Text of others that stays in its line.
pub fn one_line(text: &str) -> String {
    gatewright_findings::printable(text, 500)
}
