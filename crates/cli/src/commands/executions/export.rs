//! `gatewright executions export`: writes what `suite` or `plan` makes of a run.

use std::{fs::OpenOptions, io::Write as _};

use anyhow::Context as _;

use super::{plan, recorded, suite};
use crate::{args::ExportArgs, exit::BadConfig, output};

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
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened =
        opened.map_err(|error| BadConfig(format!("{} cannot be written: {error}", file.display())))?;
    opened.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", file.display()))
}
