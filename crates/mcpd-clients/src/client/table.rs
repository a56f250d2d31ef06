//! Table of the clients.

use super::form::{Default, Form, HttpForm, StdioForm, TokenForm};
use super::link::Scheme;
use super::{Base, Client, Paths, ProjectPath, Reference};
use crate::edit::Format;

/// Keys that most clients share.
const STDIO: StdioForm = StdioForm {
    kind: None,
    command: "command",
    args: "args",
    env: "env",
    pass_env: None,
};

const TYPED_STDIO: StdioForm = StdioForm {
    kind: Some("stdio"),
    ..STDIO
};

const HTTP: HttpForm = HttpForm {
    kind: None,
    url: "url",
    token: TokenForm::Header,
};

const TYPED_HTTP: HttpForm = HttpForm {
    kind: Some("http"),
    ..HTTP
};

const FORM: Form = Form {
    has_name: false,
    stdio: STDIO,
    http: Some(HTTP),
    defaults: &[],
};

const TYPED_FORM: Form = Form {
    stdio: TYPED_STDIO,
    http: Some(TYPED_HTTP),
    ..FORM
};

const SERVER_URL_FORM: Form = Form {
    http: Some(HttpForm {
        url: "serverUrl",
        ..HTTP
    }),
    ..FORM
};

/// Settings that most clients share; each names the others.
const CLIENT: Client = Client {
    name: "",
    title: "",
    format: Format::Jsonc,
    keys: &["mcpServers"],
    item_key: None,
    user: Paths::home(""),
    project: None,
    project_path: ProjectPath::Missing,
    has_local: false,
    form: FORM,
    reference: Reference::Missing,
    is_graphical: false,
    has_shell_path: false,
    ignored: &[],
    withheld: &[],
    link: None,
    trace: Paths::home(""),
    programs: &[],
    preface: "",
    has_jsonc: false,
};

pub(super) static CLIENTS: [Client; 22] = [
    Client {
        name: "amp",
        title: "Amp",
        // One key with a dot in it.
        keys: &["amp.mcpServers"],
        user: dot_config("amp/settings.json"),
        project: Some(".amp/settings.json"),
        reference: Reference::Braces,
        trace: dot_config("amp"),
        programs: &["amp"],
        ..CLIENT
    },
    Client {
        name: "antigravity",
        title: "Antigravity",
        user: Paths::home(".gemini/antigravity/mcp_config.json"),
        form: SERVER_URL_FORM,
        is_graphical: true,
        trace: Paths::home(".gemini/antigravity"),
        programs: &["antigravity"],
        ..CLIENT
    },
    Client {
        name: "claude-code",
        title: "Claude Code",
        format: Format::Json,
        user: Paths::home(".claude.json").or_variable("CLAUDE_CONFIG_DIR", ".claude.json"),
        project: Some(".mcp.json"),
        project_path: ProjectPath::Relative,
        has_local: true,
        form: TYPED_FORM,
        reference: Reference::Braces,
        trace: Paths::home(".claude").or_variable("CLAUDE_CONFIG_DIR", ""),
        programs: &["claude"],
        ..CLIENT
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        user: Paths::config("Claude/claude_desktop_config.json"),
        // An entry with a URL is skipped, or ends the client at its start.
        form: Form { http: None, ..FORM },
        is_graphical: true,
        trace: Paths::config("Claude"),
        programs: &["claude-desktop"],
        ..CLIENT
    },
    Client {
        name: "cline",
        title: "Cline",
        user: Paths::config(
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        form: Form {
            http: Some(HttpForm {
                kind: Some("streamableHttp"),
                ..HTTP
            }),
            defaults: &[("disabled", Default::Bool(false))],
            ..FORM
        },
        is_graphical: true,
        has_shell_path: true,
        trace: Paths::config("Code/User/globalStorage/saoudrizwan.claude-dev"),
        ..CLIENT
    },
    Client {
        name: "codex",
        title: "Codex",
        format: Format::Toml,
        keys: &["mcp_servers"],
        user: Paths::home(".codex/config.toml").or_variable("CODEX_HOME", "config.toml"),
        project: Some(".codex/config.toml"),
        project_path: ProjectPath::Relative,
        form: Form {
            stdio: StdioForm {
                pass_env: Some("env_vars"),
                ..STDIO
            },
            http: Some(HttpForm {
                token: TokenForm::Variable("bearer_token_env_var"),
                ..HTTP
            }),
            ..FORM
        },
        reference: Reference::Name,
        trace: Paths::home(".codex").or_variable("CODEX_HOME", ""),
        programs: &["codex"],
        ..CLIENT
    },
    Client {
        name: "continue",
        title: "Continue",
        format: Format::Yaml,
        item_key: Some("name"),
        user: Paths::home(".continue/mcpServers/{name}.yaml"),
        project: Some(".continue/mcpServers/{name}.yaml"),
        project_path: ProjectPath::Relative,
        form: Form {
            has_name: true,
            stdio: TYPED_STDIO,
            http: Some(HttpForm {
                kind: Some("streamable-http"),
                url: "url",
                token: TokenForm::RequestOptions,
            }),
            defaults: &[],
        },
        reference: Reference::Secret,
        is_graphical: true,
        has_shell_path: true,
        trace: Paths::home(".continue"),
        programs: &["cn"],
        preface: "name: mcpd\nversion: 1.0.0\nschema: v1\n",
        ..CLIENT
    },
    Client {
        name: "copilot-cli",
        title: "GitHub Copilot CLI",
        user: Paths::home(".copilot/mcp-config.json")
            .or_variable("COPILOT_HOME", "mcp-config.json"),
        project: Some(".mcp.json"),
        project_path: ProjectPath::Relative,
        form: Form {
            defaults: &[("tools", Default::All)],
            ..TYPED_FORM
        },
        reference: Reference::Braces,
        trace: Paths::home(".copilot").or_variable("COPILOT_HOME", ""),
        programs: &["copilot"],
        // References to these stay as they are written.
        withheld: &[
            "COPILOT_GITHUB_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
        ],
        ..CLIENT
    },
    Client {
        name: "crush",
        title: "Crush",
        format: Format::Json,
        keys: &["mcp"],
        user: Paths {
            windows: Base::LocalData("crush/crush.json"),
            ..dot_config("crush/crush.json")
        },
        project: Some(".crush.json"),
        project_path: ProjectPath::Relative,
        form: TYPED_FORM,
        reference: Reference::Dollar,
        trace: Paths {
            windows: Base::LocalData("crush"),
            ..dot_config("crush")
        },
        programs: &["crush"],
        ..CLIENT
    },
    Client {
        name: "cursor",
        title: "Cursor",
        user: Paths::home(".cursor/mcp.json"),
        project: Some(".cursor/mcp.json"),
        project_path: ProjectPath::WorkspaceFolder,
        reference: Reference::EnvBraces,
        is_graphical: true,
        has_shell_path: true,
        link: Some(Scheme::Cursor),
        trace: Paths::home(".cursor"),
        programs: &["cursor"],
        ..CLIENT
    },
    Client {
        name: "gemini-cli",
        title: "Gemini CLI",
        user: Paths::home(".gemini/settings.json"),
        project: Some(".gemini/settings.json"),
        project_path: ProjectPath::Relative,
        // `url` means the older transport, HTTP with server-sent events.
        form: Form {
            http: Some(HttpForm {
                url: "httpUrl",
                ..HTTP
            }),
            ..FORM
        },
        reference: Reference::Braces,
        trace: Paths::home(".gemini/settings.json"),
        programs: &["gemini"],
        ..CLIENT
    },
    Client {
        name: "goose",
        title: "Goose",
        format: Format::Yaml,
        keys: &["extensions"],
        user: Paths {
            windows: Base::Config("Block/goose/config/config.yaml"),
            ..dot_config("goose/config.yaml")
        },
        form: Form {
            has_name: true,
            stdio: StdioForm {
                kind: Some("stdio"),
                command: "cmd",
                args: "args",
                env: "envs",
                pass_env: Some("env_keys"),
            },
            http: Some(HttpForm {
                kind: Some("streamable_http"),
                url: "uri",
                token: TokenForm::Listed("env_keys"),
            }),
            defaults: &[
                ("description", Default::Text("Scripts as tools")),
                ("enabled", Default::Bool(true)),
                ("timeout", Default::Number(300)),
            ],
        },
        reference: Reference::Name,
        is_graphical: true,
        // It asks the login shell for PATH.
        ignored: &[
            "PATH",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "DYLD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONPATH",
            "PYTHONHOME",
            "NODE_OPTIONS",
            "RUBYOPT",
            "GEM_PATH",
            "GEM_HOME",
            "CLASSPATH",
            "TEMP",
            "TMP",
            "LOCALAPPDATA",
            "USERPROFILE",
        ],
        link: Some(Scheme::Goose),
        trace: Paths {
            windows: Base::Config("Block/goose"),
            ..dot_config("goose")
        },
        programs: &["goose"],
        ..CLIENT
    },
    Client {
        name: "junie",
        title: "JetBrains Junie",
        format: Format::Json,
        user: Paths::home(".junie/mcp/mcp.json"),
        project: Some(".junie/mcp/mcp.json"),
        form: Form { http: None, ..FORM },
        is_graphical: true,
        trace: Paths::home(".junie"),
        programs: &["junie"],
        ..CLIENT
    },
    Client {
        name: "kiro",
        title: "Kiro",
        user: Paths::home(".kiro/settings/mcp.json"),
        project: Some(".kiro/settings/mcp.json"),
        form: Form {
            defaults: &[("disabled", Default::Bool(false))],
            ..FORM
        },
        reference: Reference::Braces,
        is_graphical: true,
        has_shell_path: true,
        trace: Paths::home(".kiro"),
        programs: &["kiro", "kiro-cli"],
        ..CLIENT
    },
    Client {
        name: "lm-studio",
        title: "LM Studio",
        user: Paths::home(".lmstudio/mcp.json"),
        is_graphical: true,
        link: Some(Scheme::LmStudio),
        trace: Paths::home(".lmstudio"),
        programs: &["lms"],
        ..CLIENT
    },
    Client {
        name: "mcporter",
        title: "mcporter",
        user: Paths::home(".mcporter/mcporter.json"),
        project: Some("config/mcporter.json"),
        project_path: ProjectPath::Parent,
        reference: Reference::Braces,
        trace: Paths::home(".mcporter"),
        programs: &["mcporter"],
        has_jsonc: true,
        ..CLIENT
    },
    Client {
        name: "opencode",
        title: "opencode",
        keys: &["mcp"],
        user: dot_config("opencode/opencode.json").or_variable("OPENCODE_CONFIG", ""),
        project: Some("opencode.json"),
        project_path: ProjectPath::Relative,
        form: Form {
            stdio: StdioForm {
                kind: Some("local"),
                command: "command",
                args: "",
                env: "environment",
                pass_env: None,
            },
            http: Some(HttpForm {
                kind: Some("remote"),
                ..HTTP
            }),
            defaults: &[("enabled", Default::Bool(true))],
            ..FORM
        },
        reference: Reference::BareBraces,
        trace: dot_config("opencode"),
        programs: &["opencode"],
        has_jsonc: true,
        ..CLIENT
    },
    Client {
        name: "roo",
        title: "Roo Code",
        user: Paths::config(
            "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ),
        project: Some(".roo/mcp.json"),
        project_path: ProjectPath::WorkspaceFolder,
        form: Form {
            http: Some(HttpForm {
                kind: Some("streamable-http"),
                ..HTTP
            }),
            defaults: &[("disabled", Default::Bool(false))],
            ..FORM
        },
        reference: Reference::EnvBraces,
        is_graphical: true,
        has_shell_path: true,
        trace: Paths::config("Code/User/globalStorage/rooveterinaryinc.roo-cline"),
        ..CLIENT
    },
    Client {
        name: "vscode",
        title: "Visual Studio Code",
        keys: &["servers"],
        user: Paths::config("Code/User/mcp.json"),
        project: Some(".vscode/mcp.json"),
        project_path: ProjectPath::WorkspaceFolder,
        form: TYPED_FORM,
        reference: Reference::Input,
        is_graphical: true,
        has_shell_path: true,
        link: Some(Scheme::VsCode),
        trace: Paths::config("Code/User"),
        programs: &["code"],
        ..CLIENT
    },
    Client {
        name: "warp",
        title: "Warp",
        user: Paths::home(".warp/.mcp.json"),
        project: Some(".warp/.mcp.json"),
        is_graphical: true,
        trace: Paths::home(".warp"),
        programs: &["warp-terminal", "warp"],
        ..CLIENT
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        user: Paths::home(".codeium/windsurf/mcp_config.json"),
        form: SERVER_URL_FORM,
        reference: Reference::EnvBraces,
        is_graphical: true,
        has_shell_path: true,
        trace: Paths::home(".codeium/windsurf"),
        programs: &["windsurf"],
        ..CLIENT
    },
    Client {
        name: "zed",
        title: "Zed",
        keys: &["context_servers"],
        user: Paths {
            windows: Base::Config("Zed/settings.json"),
            ..dot_config("zed/settings.json")
        },
        project: Some(".zed/settings.json"),
        project_path: ProjectPath::Relative,
        is_graphical: true,
        has_shell_path: true,
        trace: Paths {
            windows: Base::Config("Zed"),
            ..dot_config("zed")
        },
        programs: &["zed", "zeditor"],
        ..CLIENT
    },
];

/// Path below `XDG_CONFIG_HOME` on Linux and `~/.config` elsewhere.
const fn dot_config(path: &'static str) -> Paths {
    Paths {
        linux: Base::Config(path),
        macos: Base::DotConfig(path),
        windows: Base::DotConfig(path),
        variable: None,
    }
}
