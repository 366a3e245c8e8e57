package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
)

// networks writes the networks that an engine's estimates are learned from.
func networks(folder string) error {
	if folder == "" {
		return errors.New("name a folder to write the networks to")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	all, err := zoo.Runnable()
	if err != nil {
		return err
	}
	for _, g := range all {
		content, err := zoo.File(g)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, g.Name+".onnx"), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
