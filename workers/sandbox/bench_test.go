package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkStart is the time from nothing to the end of a program that does
// nothing, as it is and held by all layers there are.
func BenchmarkStart(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("held", func(b *testing.B) {
		s, err := Open(b.Context(), Options{Mode: Auto, Search: []string{"/usr/bin"}})
		if err != nil {
			b.Fatal(err)
		}
		own := b.TempDir()
		if err := os.Mkdir(filepath.Join(own, Temporary), 0o700); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			held, err := s.Hold(Job{Own: []string{own}, Command: &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: own}})
			if err == nil {
				err = held.Command.Start()
			}
			if err == nil {
				err = held.Await()
			}
			if err == nil {
				err = held.Command.Wait()
			}
			if err != nil {
				b.Fatal(err)
			}
			held.Close()
		}
	})
}
