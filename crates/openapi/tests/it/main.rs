//! Tests of OpenAPI apps from the outside.
