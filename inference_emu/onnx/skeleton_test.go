package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// A skeleton has no weight and no name, and what is filled has the architecture's key.
func TestASkeletonIsTheArchitecture(t *testing.T) {
	models, err := filepath.Glob("testdata/*.onnx")
	more, err2 := filepath.Glob("../emulator/testdata/*.onnx")
	if err != nil || err2 != nil || len(models) < 5 || len(more) < 3 {
		t.Fatal(models, more, err, err2)
	}
	for _, path := range append(models, more...) {
		model, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, err := onnx.Read(model, onnx.Options{})
		if err != nil {
			continue // sizes other than the batch are open: no skeleton is made of it
		}
		skeleton, err := document.Skeleton(model)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, named := range before.Operators {
			if len(named.Name) > 3 && bytes.Contains(skeleton, []byte(named.Name)) {
				t.Errorf("%s: the skeleton names %s", path, named.Name)
			}
		}
		filled, err := document.Fill(skeleton, 1<<30)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		after, err := onnx.Read(filled, onnx.Options{})
		if err != nil || after.Key() != before.Key() {
			t.Errorf("%s: the filled skeleton is another architecture: %v", path, err)
		}
		if stored := before.StoredBytes(); int64(len(filled)) < stored || int64(len(model)-len(skeleton)) < stored*9/10 {
			t.Errorf("%s: %d bytes of model, %d of weights, %d of skeleton, %d filled", path, len(model), stored, len(skeleton), len(filled))
		}
	}
}

// canary stands for a secret in whatever a file may hold.
const canary = "secret-of-the-user"

func TestASkeletonTellsNothing(t *testing.T) {
	weights := message(5, integers(1, 4, 16), integer(2, 1), text(8, "weights "+canary), message(9, []byte(strings.Repeat(canary+"..............", 8))))
	model := bytes.Join([][]byte{
		text(2, "producer "+canary), text(6, canary), message(14, text(1, canary), text(2, canary)),
		file(weights, text(2, canary), text(10, canary),
			node("MatMul", []string{"input " + canary, "weights " + canary}, []string{"output " + canary}),
			info(11, "input "+canary, 1, 1, 4), info(12, "output "+canary, 1, 1, 16)),
	}, nil)
	skeleton, err := document.Skeleton(model)
	if err != nil || bytes.Contains(skeleton, []byte("secret")) || !bytes.Contains(skeleton, []byte("MatMul")) {
		t.Errorf("%q, %v", skeleton, err)
	}
	if _, err := document.Fill(skeleton, 4*16*4-1); !problem.Is(err, problem.Exhausted) {
		t.Errorf("too many weights: %v", err)
	}
}

// Where weights are not in initializers, none is made.
func TestNoSkeletonOfWhatHasWeightsElsewhere(t *testing.T) {
	floats := message(5, text(1, "thresholds"), message(7, make([]byte, 4*9)))
	outside := message(5, integers(1, 4), integer(2, 1), text(8, "w"), integer(14, 1))
	for name, model := range map[string][]byte{
		"attributes":    file(node("TreeEnsembleRegressor", []string{"x"}, []string{"y"}, floats)),
		"inner graphs":  file(node("If", []string{"x"}, []string{"y"}, message(5, text(1, "then"), message(6)))),
		"other files":   file(outside),
		"sparse ones":   file(message(15)),
		"functions":     append(file(), message(25)...),
		"negative size": file(message(5, integers(1, -4), integer(2, 1))),
		"no ONNX file":  []byte("no ONNX file"),
		"a cut file":    protowire.AppendTag(nil, 7, protowire.BytesType),
	} {
		if got, err := document.Skeleton(model); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	unknown := file(message(5, integers(1, 4), integer(2, 8)))
	if got, err := document.Fill(unknown, 1<<20); !problem.Is(err, problem.Invalid) {
		t.Errorf("text is filled: %q, %v", got, err)
	}
}

func FuzzSkeleton(f *testing.F) {
	f.Add(file(node("Relu", []string{"x"}, []string{"y"})))
	f.Add(file(message(5, integers(1, 4), integer(2, 1))))
	f.Fuzz(func(t *testing.T, model []byte) {
		for _, make := range []func([]byte) ([]byte, error){document.Skeleton, func(b []byte) ([]byte, error) { return document.Fill(b, 1<<20) }} {
			if out, err := make(model); err == nil && len(out) > 2*len(model)+1<<21 {
				t.Errorf("%d bytes of %d", len(out), len(model))
			}
		}
	})
}
