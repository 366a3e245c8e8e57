package main

import "github.com/tandem-tune/tandem/workers/sandbox"

// sandboxMode is a flag's value.
type sandboxMode sandbox.Mode

func (m *sandboxMode) String() string { return string(*m) }

func (m *sandboxMode) Type() string { return "auto|strict|off" }

func (m *sandboxMode) Set(text string) error {
	mode, err := sandbox.ParseMode(text)
	*m = sandboxMode(mode)
	return err
}
