package onnxruntime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
)

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheLibraryIsFound(t *testing.T) {
	const old, fit = "libonnxruntime.so.1.20.1", "libonnxruntime.so.1.30.0"
	tests := []struct {
		name    string
		files   []string // below the root
		named   string   // likewise
		through string   // the environment variable, likewise
		want    string   // likewise; "" for none
		says    string
	}{
		{name: "of the system", files: []string{"usr/lib/" + fit}, want: "usr/lib/" + fit},
		{name: "an old one is passed over", files: []string{"usr/local/lib/" + old, "usr/lib/" + fit}, want: "usr/lib/" + fit},
		{name: "only old ones", files: []string{"usr/lib/" + old}, says: "too old"},
		{name: "none", says: "pip install onnxruntime"},
		{name: "named", files: []string{"usr/lib/" + fit, "mine/" + fit}, named: "mine/" + fit, want: "mine/" + fit},
		{name: "a named folder", files: []string{"mine/" + fit}, named: "mine", want: "mine/" + fit},
		{name: "named, and old", files: []string{"usr/lib/" + fit, "mine/" + old}, named: "mine/" + old, says: "too old"},
		{name: "named, and not there", files: []string{"usr/lib/" + fit}, named: "nowhere.so", says: "--onnxruntime names"},
		{name: "by the variable", files: []string{"usr/lib/" + fit, "mine/" + fit}, through: "mine", want: "mine/" + fit},
		{name: "of Python", files: []string{"site-packages/onnxruntime/capi/" + fit}, want: "site-packages/onnxruntime/capi/" + fit},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range test.files {
				put(t, filepath.Join(root, file), "")
			}
			t.Setenv("LD_LIBRARY_PATH", "")
			t.Setenv(onnxruntime.Variable, "")
			if test.through != "" {
				t.Setenv(onnxruntime.Variable, filepath.Join(root, test.through))
			}
			python := put(t, filepath.Join(root, "python"), "#!/bin/sh\necho "+root+"/site-packages\n")
			options := onnxruntime.Options{Root: root, Python: python}
			if test.named != "" {
				options.Named = filepath.Join(root, test.named)
			}
			found, err := onnxruntime.Find(t.Context(), options)
			if test.want == "" {
				if !problem.Is(err, problem.NotFound) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("want %q, got %v", test.says, err)
				}
				return
			}
			if err != nil || found != filepath.Join(root, test.want) {
				t.Errorf("found %q, %v, want %s", found, err, test.want)
			}
		})
	}
}
