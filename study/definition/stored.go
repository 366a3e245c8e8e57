package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Stored reads a Definition from the JSON that a store kept of it. Anything
// unknown or behind it is an error: the store was written by another version,
// or is damaged.
func Stored(data []byte) (Definition, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var def Definition
	if err := decoder.Decode(&def); err != nil {
		if field, newer := strings.CutPrefix(err.Error(), "json: unknown field "); newer {
			return Definition{}, problem.New(problem.Internal, "a stored study has the field %s, which this version of tandem does not know: run the version that stored it, or a newer one", field)
		}
		return Definition{}, problem.New(problem.Internal, "read a stored study: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Definition{}, problem.New(problem.Internal, "read a stored study: something follows the definition")
	}
	if len(def.Command) > 0 && def.System.IsZero() {
		def.System.Word = Off // it was stored when nothing was tuned by default
	}
	return def, nil
}
