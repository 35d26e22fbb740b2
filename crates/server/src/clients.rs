//! MCP clients: their configuration files, and how each is told of a server.
//!
//! The one table for the page at `/`, for `gatewright connect` and `init`, and for the documentation. The format of each client comes from the
//! page named in [`Facts::source`].

use serde_json::{Map, Value, json};

/// A client that keeps its MCP servers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are names of products")]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Windsurf,
    Zed,
    Codex,
    Gemini,
}

/// Format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON; comments and trailing commas are kept where a client allows them.
    Json,
    /// TOML.
    Toml,
}

/// Folder that a client's file is in, by operating system and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The user's home folder.
    Home,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    Config,
    /// `~/Library/Application Support`.
    ApplicationSupport,
    /// `%APPDATA%`.
    AppData,
}

/// Place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub base: Base,
    /// The path below it.
    pub path: &'static str,
}

/// Properties of a client.
#[derive(Debug)]
pub struct Facts {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name.
    pub title: &'static str,
    /// The key whose object has the servers.
    pub section: &'static str,
    /// Format of the file.
    pub format: FileFormat,
    /// The file on Linux, macOS and Windows.
    pub places: [Place; 3],
    /// A variable that names another folder, and the file in it.
    pub moved_by: Option<(&'static str, &'static str)>,
    /// The client's own description of its file.
    pub source: &'static str,
}

/// A way to a server.
#[derive(Debug, Clone, Copy)]
pub enum Way<'a> {
    /// Streamable HTTP.
    Url(&'a str),
    /// A command that serves one client over standard input and output.
    Command(&'a str, &'a [String]),
}

/// Instruction for a person who connects a client.
#[derive(Debug)]
pub struct Instruction {
    /// The client's name.
    pub client: &'static str,
    /// The file that `text` belongs into, or `None` for a shell.
    pub file: Option<String>,
    /// The command line, or what to add to the file.
    pub text: String,
}

const fn at(base: Base, path: &'static str) -> Place {
    Place { base, path }
}

const fn home(path: &'static str) -> [Place; 3] {
    [at(Base::Home, path); 3]
}

static CLAUDE_CODE: Facts = Facts {
    id: "claude-code",
    title: "Claude Code",
    section: "mcpServers",
    format: FileFormat::Json,
    places: home(".claude.json"),
    moved_by: Some(("CLAUDE_CONFIG_DIR", ".claude.json")),
    source: "https://code.claude.com/docs/en/mcp",
};

static CLAUDE_DESKTOP: Facts = Facts {
    id: "claude-desktop",
    title: "Claude Desktop",
    section: "mcpServers",
    format: FileFormat::Json,
    places: [
        at(Base::Config, "Claude/claude_desktop_config.json"),
        at(Base::ApplicationSupport, "Claude/claude_desktop_config.json"),
        at(Base::AppData, "Claude/claude_desktop_config.json"),
    ],
    moved_by: None,
    source: "https://modelcontextprotocol.io/quickstart/user",
};

static CURSOR: Facts = Facts {
    id: "cursor",
    title: "Cursor",
    section: "mcpServers",
    format: FileFormat::Json,
    places: home(".cursor/mcp.json"),
    moved_by: None,
    source: "https://cursor.com/docs/mcp",
};

static VS_CODE: Facts = Facts {
    id: "vscode",
    title: "VS Code",
    section: "servers",
    format: FileFormat::Json,
    places: [
        at(Base::Config, "Code/User/mcp.json"),
        at(Base::ApplicationSupport, "Code/User/mcp.json"),
        at(Base::AppData, "Code/User/mcp.json"),
    ],
    moved_by: None,
    source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
};

static WINDSURF: Facts = Facts {
    id: "windsurf",
    title: "Windsurf",
    section: "mcpServers",
    format: FileFormat::Json,
    places: home(".codeium/windsurf/mcp_config.json"),
    moved_by: None,
    source: "https://docs.windsurf.com/windsurf/cascade/mcp",
};

static ZED: Facts = Facts {
    id: "zed",
    title: "Zed",
    section: "context_servers",
    format: FileFormat::Json,
    places: [
        at(Base::Config, "zed/settings.json"),
        at(Base::Home, ".config/zed/settings.json"),
        at(Base::AppData, "Zed/settings.json"),
    ],
    moved_by: None,
    source: "https://zed.dev/docs/ai/mcp",
};

static CODEX: Facts = Facts {
    id: "codex",
    title: "Codex",
    section: "mcp_servers",
    format: FileFormat::Toml,
    places: home(".codex/config.toml"),
    moved_by: Some(("CODEX_HOME", "config.toml")),
    source: "https://developers.openai.com/codex/mcp",
};

static GEMINI: Facts = Facts {
    id: "gemini",
    title: "Gemini CLI",
    section: "mcpServers",
    format: FileFormat::Json,
    places: home(".gemini/settings.json"),
    moved_by: None,
    source: "https://geminicli.com/docs/tools/mcp-server/",
};

impl Client {
    /// Every client.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Zed,
        Self::Codex,
        Self::Gemini,
    ];

    /// Its properties.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::ClaudeDesktop => &CLAUDE_DESKTOP,
            Self::Cursor => &CURSOR,
            Self::VsCode => &VS_CODE,
            Self::Windsurf => &WINDSURF,
            Self::Zed => &ZED,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
        }
    }

    /// Returns `false` if its file has no servers at addresses, only commands.
    pub fn takes_addresses(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// The value under the server's name in its file. A client that takes no addresses gets a bridge for one.
    pub fn entry(self, way: Way<'_>) -> Map<String, Value> {
        let entry = match (self, way) {
            (Self::ClaudeCode | Self::VsCode, Way::Url(url)) => json!({"type": "http", "url": url}),
            (Self::ClaudeDesktop, Way::Url(url)) => {
                json!({"command": "npx", "args": ["-y", "mcp-remote", url]})
            }
            (Self::Windsurf, Way::Url(url)) => json!({"serverUrl": url}),
            (Self::Gemini, Way::Url(url)) => json!({"httpUrl": url}),
            (Self::Cursor | Self::Zed | Self::Codex, Way::Url(url)) => json!({"url": url}),
            (Self::ClaudeCode | Self::VsCode, Way::Command(program, args)) => {
                json!({"type": "stdio", "command": program, "args": args})
            }
            (Self::Zed, Way::Command(program, args)) => json!({"command": program, "args": args, "env": {}}),
            (_, Way::Command(program, args)) => json!({"command": program, "args": args}),
        };
        match entry {
            Value::Object(entry) => entry,
            _ => Map::new(),
        }
    }

    /// The text that adds a server to an empty file.
    pub fn file_with(self, name: &str, way: Way<'_>) -> String {
        let Facts { section, format, .. } = self.facts();
        let entry = self.entry(way);
        match format {
            FileFormat::Json => {
                serde_json::to_string_pretty(&json!({*section: {name: entry}})).unwrap_or_default() + "\n"
            }
            FileFormat::Toml => toml_table(section, name, &entry),
        }
    }

    /// The client's own command line that adds a server at `url`, if it has one.
    pub fn command_line(self, name: &str, url: &str) -> Option<String> {
        match self {
            Self::ClaudeCode => Some(format!("claude mcp add --transport http {name} {url}")),
            Self::VsCode => {
                let mut server = Map::from_iter([("name".to_owned(), Value::from(name))]);
                server.extend(self.entry(Way::Url(url)));
                Some(format!("code --add-mcp '{}'", Value::Object(server)))
            }
            Self::Codex => Some(format!("codex mcp add {name} --url {url}")),
            Self::Gemini => Some(format!("gemini mcp add --scope user --transport http {name} {url}")),
            Self::ClaudeDesktop | Self::Cursor | Self::Windsurf | Self::Zed => None,
        }
    }

    /// The client's own command line for a server at `url`, else the text for its file.
    pub fn instruction(self, name: &str, url: &str) -> Instruction {
        let client = self.facts().title;
        match self.command_line(name, url) {
            Some(text) => Instruction { client, file: None, text },
            None => {
                let text = self.file_with(name, Way::Url(url)).trim_end().to_owned();
                Instruction { client, file: Some(self.facts().places[0].shown()), text }
            }
        }
    }
}

impl Place {
    /// The place as people write it.
    pub fn shown(&self) -> String {
        let base = match self.base {
            Base::Home => "~/",
            Base::Config => "~/.config/",
            Base::ApplicationSupport => "~/Library/Application Support/",
            Base::AppData => return format!("%APPDATA%\\{}", self.path.replace('/', "\\")),
        };
        format!("{base}{}", self.path)
    }
}

/// A table of TOML with strings and lists of strings.
fn toml_table(section: &str, name: &str, entry: &Map<String, Value>) -> String {
    let is_bare = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    // Strings of JSON are basic strings of TOML.
    let name = if is_bare(name) { name.to_owned() } else { Value::from(name).to_string() };
    let mut text = format!("[{section}.{name}]\n");
    for (key, value) in entry {
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

/// A name under which clients can list a server: letters, digits, `_` and `-`.
pub fn server_name(name: &str) -> String {
    let sound = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().map(sound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_an_entry_for_both_ways_under_its_own_key() {
        let args = ["serve".to_owned()];
        for client in Client::ALL {
            let facts = client.facts();
            for (way, part) in [
                (Way::Url("https://a.example/mcp"), "https://a.example/mcp"),
                (Way::Command("/bin/gw", &args), "/bin/gw"),
            ] {
                let text = client.file_with("gw", way);
                assert!(text.contains(facts.section) && text.contains("gw") && text.contains(part), "{text}");
            }
            assert!(facts.source.starts_with("https://"), "{facts:?}");
        }
        assert_eq!(
            Client::Codex.file_with("a.b", Way::Command("x y", &args)),
            "[mcp_servers.\"a.b\"]\ncommand = \"x y\"\nargs = [\"serve\"]\n"
        );
    }
}
