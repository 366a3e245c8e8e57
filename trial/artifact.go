package trial

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Bounds of the files that a trial's script logs.
const (
	// LargestArtifact is the most bytes of a file.
	LargestArtifact = 8 << 20
	// MostArtifacts is how many a trial has, and mostLogged how many bytes together.
	MostArtifacts = 32
	mostLogged    = 32 << 20
	// Model is the name of the trained model, in ONNX, of LargestModel bytes at most. It
	// does not count among the others, nor does it in other precisions ([ModelIn]).
	Model        = "model.onnx"
	LargestModel = 128 << 20
)

// LargestNamed is the most bytes of a file with the name.
func LargestNamed(name string) int64 {
	if IsModel(name) {
		return LargestModel
	}
	return LargestArtifact
}

// Artifact is a file that a trial's script logged, such as a picture.
type Artifact struct {
	Name string `json:"name"`
	// Kind is how it is shown: "image", "table", "text", or "file": not at all.
	Kind       string     `json:"kind" enum:"image,table,text,file"`
	Epoch      int        `json:"epoch" doc:"the last epoch reported before"`
	Rung       int        `json:"rung"`
	LeaseEpoch LeaseEpoch `json:"lease_epoch"`
	SHA256     string     `json:"artifact" doc:"SHA-256 of the bytes"`
	Bytes      int64      `json:"bytes"`
	At         time.Time  `json:"at"`
}

// artifactTypes is what a file is sent as, by the end of its name. No other type is ever
// sent, so that no browser runs one.
var artifactTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".csv": "text/csv; charset=utf-8",
	".txt": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8", ".json": "text/plain; charset=utf-8", ".yaml": "text/plain; charset=utf-8",
}

// ContentType is what the file is sent as.
func (a Artifact) ContentType() string {
	return cmp.Or(artifactTypes[strings.ToLower(path.Ext(a.Name))], "application/octet-stream")
}

// kindOf is how the file is shown.
func (a Artifact) kindOf() string {
	group, kind, _ := strings.Cut(a.ContentType(), "/")
	switch {
	case group == "image":
		return "image"
	case strings.HasPrefix(kind, "csv"):
		return "table"
	case group == "text":
		return "text"
	}
	return "file"
}

var artifactName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`)

// CheckArtifact names what is wrong with a file's name and size.
func CheckArtifact(name string, bytes int64) error {
	var faults []problem.Field
	if !artifactName.MatchString(name) {
		faults = append(faults, problem.Field{Path: "name", Value: name, Message: "must have 1 to 100 letters, digits, _, - or ., and no . at its start: name it like confusion.png"})
	}
	if most := LargestNamed(name); bytes < 0 || bytes > most {
		faults = append(faults, problem.Field{Path: "bytes", Value: bytes, Message: fmt.Sprintf("must be at most %d: make it smaller, or save it with the checkpoint", most)})
	}
	if len(faults) > 0 {
		return problem.WithFields("the artifact is not valid", faults)
	}
	return nil
}

// WithArtifact is the trial with the file in place of one of the same name; false where
// it has the same one already. The error is invalid where it has too many.
func (t Trial) WithArtifact(a Artifact) (Trial, bool, error) {
	a.Kind = a.kindOf()
	at, has := slices.BinarySearchFunc(t.Logged, a.Name, func(one Artifact, name string) int { return cmp.Compare(one.Name, name) })
	if has && t.Logged[at].SHA256 == a.SHA256 {
		return t, false, nil
	}
	total := int64(0)
	for i, one := range append(slices.Clone(t.Logged), a) {
		if !IsModel(one.Name) && (!has || i != at) {
			total += one.Bytes
		}
	}
	switch {
	case !has && len(t.Logged) >= MostArtifacts:
		return t, false, problem.New(problem.Invalid, "trial %s has %d artifacts, the most there may be: log it under one of their names", t.ID, MostArtifacts)
	case total > mostLogged:
		return t, false, problem.New(problem.Invalid, "the artifacts of trial %s would have %d bytes together, and may have %d: log smaller ones", t.ID, total, mostLogged)
	}
	t.Logged = slices.Clone(t.Logged)
	if has {
		t.Logged[at] = a
	} else {
		t.Logged = slices.Insert(t.Logged, at, a)
	}
	return t, true, nil
}
