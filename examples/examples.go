// Package examples holds the example that the binary carries.
package examples

import "embed"

// QuickStart is the folder quick-start: a study file and its script, which needs
// only Python and the client.
//
//go:embed quick-start
var QuickStart embed.FS
