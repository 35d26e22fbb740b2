//! `gatewright executions export`: writes what `suite` or `plan` makes of a run.

use super::{plan, recorded, suite};
use crate::{args::ExportArgs, clients::files, exit::BadConfig, output};

/// Writes the suite or the plan of an execution.
pub async fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let (run, workers) = recorded(&args.id, &args.config).await?;
    let text = if args.suite {
        suite::of(&run, &workers).await?
    } else {
        let stem = args.output.as_deref().and_then(|file| file.file_stem()?.to_str());
        plan::of(&run, args.name.as_deref().or(stem), args.description.as_deref())?
    };
    let Some(file) = &args.output else { return output::raw(text.as_bytes()) };
    // What tools answered is for the user's eyes.
    files::write_new(file, &text, 0o600)
        .map_err(|error| BadConfig(format!("{} cannot be written: {error}", file.display())).into())
}
