package workercmd

import "github.com/tandem-tune/tandem/workers/sandbox"

// SandboxMode is a flag's value.
type SandboxMode sandbox.Mode

// String is the flag's value as it is written.
func (m *SandboxMode) String() string { return string(*m) }

// Type is what the help calls it.
func (m *SandboxMode) Type() string { return "auto|strict|off" }

// Set reads the flag's value.
func (m *SandboxMode) Set(text string) error {
	mode, err := sandbox.ParseMode(text)
	*m = SandboxMode(mode)
	return err
}
