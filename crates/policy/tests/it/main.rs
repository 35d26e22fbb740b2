//! Decisions of policies on the tools of an app.

#[cfg(test)]
mod checked;
#[cfg(test)]
mod decide;
#[cfg(test)]
mod deep;
