//! Tests of OpenAPI apps from the outside.

#[cfg(test)]
mod apps;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod documents_hostile;
#[cfg(test)]
mod documents_schemas;
#[cfg(test)]
mod documents_swagger;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_arguments;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod users;
