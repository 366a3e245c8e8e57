package sandbox

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// What programs and libraries say when the kernel refuses them something.
var (
	refusal = regexp.MustCompile(`(?i)permission denied|PermissionError|EACCES|operation not permitted|EPERM`)
	absence = regexp.MustCompile(`(?i)no such file or directory|FileNotFoundError|ENOENT`)
	network = regexp.MustCompile(`(?i)address family not supported|EAFNOSUPPORT`)
	quoted  = regexp.MustCompile(`['"\x60]([^'"\x60\s]*[^'"\x60\s])['"\x60]`)
	bare    = regexp.MustCompile(`(?:^|[\s:=(])(/[^\s:'"\x60,)]+)`)
)

// HowToGrant says what opens the path to commands.
func HowToGrant(path string) string {
	return fmt.Sprintf("if the sandbox is why, its worker has to be started with --allow-read %s (docs/sandbox.md)", path)
}

// Explain looks for what the sandbox may have refused in the end of a command's
// standard error, and says how its worker's owner can allow it; empty where it
// finds nothing. The directory is the study's; own is the run's, which the sandbox
// leaves to the command.
func (s *Sandbox) Explain(lastErrors []string, directory, own string) string {
	if s.Mode() == Off {
		return ""
	}
	for at := len(lastErrors) - 1; at >= 0; at-- {
		line := lastErrors[at]
		switch path := pathIn(line); {
		case own != "" && within(path, own):
			return ""
		case network.MatchString(line):
			if s.mode == Strict {
				return "the worker's sandbox is strict, which leaves no network: have what the script needs in files"
			}
			return "a study or a worker whose sandbox is strict has no network, and no sandbox has sockets of unusual families"
		case refusal.MatchString(line) && path != "":
			return s.advice(path, directory)
		case refusal.MatchString(line):
			return "the sandbox of this worker may be what refused it: docs/sandbox.md says what it allows, and how to allow more"
		case absence.MatchString(line) && s.covered(path):
			return fmt.Sprintf("a command in the sandbox has its own %s: if %s is to be read from the machine's, its worker has to be started with --allow-read %s (docs/sandbox.md)", firstFolder(path), path, path)
		}
	}
	return ""
}

// advice says which flag opens the path. The study's folder may be read anyway.
func (s *Sandbox) advice(path, directory string) string {
	absolute := path
	if !filepath.IsAbs(path) {
		absolute = filepath.Join(directory, path)
	}
	if study := clean(directory); directory != "" && within(clean(absolute), study) {
		inner, _, deeper := strings.Cut(strings.TrimPrefix(clean(absolute), study+"/"), "/")
		folder := study
		if deeper { // libraries name the folders below anew in each run
			folder = filepath.Join(study, inner)
		}
		return fmt.Sprintf("the sandbox lets a script read its study's folder and write only to TANDEM_CHECKPOINT_DIR, TMPDIR and HOME: to have %s written, start the worker with --allow-write %s, a folder that exists (docs/sandbox.md)", path, forShell(folder))
	}
	return fmt.Sprintf("the sandbox of this worker does not open %s: if the script needs it, start the worker with --allow-read %s, or --allow-write to have it written (docs/sandbox.md)", path, forShell(absolute))
}

// forShell is a path as a shell takes it.
func forShell(path string) string {
	if strings.ContainsAny(path, " \t'\"$`\\&;()<>|*?#~") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// covered reports whether the path lies where a command has a folder of its own.
func (s *Sandbox) covered(path string) bool {
	for _, folder := range ownMounts {
		if within(path, folder) {
			return true
		}
	}
	return s.home != "" && within(path, s.home)
}

func firstFolder(path string) string {
	return "/" + strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]
}

// pathIn is the path that an error names: in quotes, as Python has it, or after
// a blank or a colon.
func pathIn(line string) string {
	for _, pattern := range []*regexp.Regexp{quoted, bare} {
		if found := pattern.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}
