//! Gatewright agentscript.
