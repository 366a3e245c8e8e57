//go:build linux && !client

package term

// Client says that this build lacks servers, workers and boards, and reaches those elsewhere.
const Client = false
