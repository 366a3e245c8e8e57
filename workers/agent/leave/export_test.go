package leave

// Explain is explain.
var Explain = explain
