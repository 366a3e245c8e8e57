package backend

import (
	"github.com/goccy/go-yaml"

	"github.com/tandem-tune/tandem/internal/problem"
)

// maxProfilesBytes bounds a file of backends.
const maxProfilesBytes = 256 << 10

// ParseProfiles reads backends from YAML or JSON: a list under "backends".
// Unknown fields are refused, with the line.
func ParseProfiles(data []byte) ([]Profile, error) {
	if len(data) > maxProfilesBytes {
		return nil, problem.New(problem.Invalid, "the file of backends is longer than 256 KiB")
	}
	var file struct {
		Backends []Profile `yaml:"backends"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		return nil, problem.New(problem.Invalid, "the backends cannot be read: %v", err)
	}
	return file.Backends, Check(file.Backends)
}
