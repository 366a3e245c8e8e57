package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// Refusal is something a study wants that this worker's owner has not allowed, or
// not given. The trial is none the worse for it: another worker may take it.
type Refusal struct{ reason string }

func (f Refusal) Error() string { return f.reason }

// Refuse is a refusal for the reason.
func Refuse(reason error) error { return Refusal{reason.Error()} }

// Policy is what the worker's owner lets studies run. The zero value allows
// every command in every folder.
type Policy struct {
	// Commands are patterns of command lines, word by word; none allows all. A
	// word is a pattern of path.Match. A first word with a slash is compared with
	// the program's path, else with its name as the study writes it. A last word
	// ** stands for any further arguments.
	Commands []string
	// Directories are folders in which studies may run, or below; none allows all.
	Directories []string
	// Datasets are SHA-256 of the data sets that studies may use; none allows all.
	Datasets []string
}

// Rules say what commands may run for whom, and what they get of this machine.
type Rules struct {
	Worker string // the name that people know
	// Directory is what a study's directory is relative to.
	Directory string
	// Path are folders that come first on the PATH of commands.
	Path []string
	// Pass names variables that commands get from this process's environment; a
	// trailing * matches the rest of a name.
	Pass []string
	// Slots share the cores, unless Elastic.
	Slots   int
	Elastic bool
	Policy  Policy
	Secrets map[string]string
	// Keys are what this worker encrypts with.
	Keys *sealed.Keys
}

// anything stands for the rest of a command line.
const anything = "**"

// Complete returns the policy with absolute folders, or what is wrong with it.
func (p Policy) Complete() (Policy, error) {
	for _, pattern := range p.Commands {
		words := strings.Fields(pattern)
		if len(words) == 0 || words[0] == anything {
			return p, fmt.Errorf("--allow-command %q: it must begin with a program, such as 'python train.py %s'", pattern, anything)
		}
		for _, word := range words {
			if _, err := path.Match(word, ""); err != nil {
				return p, fmt.Errorf("--allow-command %q: %q is no pattern: %w", pattern, word, err)
			}
		}
	}
	allowed := make([]string, 0, len(p.Directories))
	for _, folder := range p.Directories {
		absolute, err := filepath.Abs(folder)
		if err == nil {
			absolute, err = filepath.EvalSymlinks(absolute)
		}
		if err != nil {
			return p, fmt.Errorf("--allow-directory %s: %w", folder, err)
		}
		allowed = append(allowed, absolute)
	}
	p.Directories = allowed
	return p, nil
}

// matches reports whether the command line is one of the pattern.
func matches(pattern string, command *exec.Cmd) bool {
	words := strings.Fields(pattern)
	open := words[len(words)-1] == anything
	if open {
		words = words[:len(words)-1]
	}
	if len(command.Args) < len(words) || len(command.Args) > len(words) && !open {
		return false
	}
	for i, word := range words {
		argument := command.Args[i]
		if i == 0 && strings.Contains(word, "/") {
			argument = command.Path
		}
		if fits, err := path.Match(word, argument); err != nil || !fits {
			return false
		}
	}
	return true
}

// Allows refuses a lease whose command this worker's owner has not allowed.
func (r Rules) Allows(command *exec.Cmd, lease protocol.Lease) error {
	if reason := r.Keys.Refuses(lease.Recipients); reason != "" {
		return Refusal{reason}
	}
	if folders := r.Policy.Directories; len(folders) > 0 {
		where, err := filepath.EvalSymlinks(command.Dir)
		if err != nil {
			where = filepath.Clean(command.Dir) // it is not there, and nothing will run in it
		}
		if !slices.ContainsFunc(folders, func(folder string) bool {
			return where == folder || strings.HasPrefix(where, strings.TrimSuffix(folder, "/")+"/")
		}) {
			return Refusal{fmt.Sprintf("its owner does not let studies run in %s, only in %s (--allow-directory)", command.Dir, strings.Join(folders, ", "))}
		}
	}
	for name, hash := range lease.Datasets {
		if len(r.Policy.Datasets) > 0 && !slices.Contains(r.Policy.Datasets, hash) {
			return Refusal{fmt.Sprintf("its owner does not allow the data set %s with the SHA-256 %s (--allow-dataset)", name, hash)}
		}
	}
	if len(r.Policy.Commands) == 0 {
		return nil
	}
	if !slices.ContainsFunc(r.Policy.Commands, func(pattern string) bool { return matches(pattern, command) }) {
		return Refusal{fmt.Sprintf("its owner does not allow the command %q, only %q (--allow-command)", command.Args, r.Policy.Commands)}
	}
	// What a program does depends on its environment as well.
	for name := range lease.Environment {
		if !slices.ContainsFunc(r.Pass, func(pattern string) bool { return covers(pattern, name) }) {
			return Refusal{fmt.Sprintf("its owner allows certain commands only, and not that the study sets the variable %s (--pass-env %s allows it)", name, name)}
		}
	}
	return nil
}

// Spares makes a refusal of a program or folder that is missing, where the owner
// chose what runs: a worker that is set up for some studies says nothing about the
// others.
func (p Policy) Spares(err error) error {
	var fault StudyFault
	if len(p.Commands)+len(p.Directories) > 0 && errors.As(err, &fault) {
		return Refusal(fault)
	}
	return err
}

// covers reports whether the name is the pattern's; a trailing * matches the rest.
func covers(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, prefix)
}

// SecretsOf are the values of what a lease's study asks for by name.
func (r Rules) SecretsOf(lease protocol.Lease) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range lease.Secrets {
		value, has := r.Secrets[name]
		if !has {
			return nil, Refusal{fmt.Sprintf("it has no secret %s: its owner gives it one with --secret %s=FILE", name, name)}
		}
		values[name] = value
	}
	return values, nil
}

// ReadSecrets reads secrets as the flags name them: NAME=FILE, or NAME for a
// variable of this environment. The end of a file's last line is not part of it.
func ReadSecrets(named []string) (map[string]string, error) {
	values := map[string]string{}
	for _, one := range named {
		name, file, fromFile := strings.Cut(one, "=")
		value, has := os.LookupEnv(name)
		if fromFile {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("--secret %s: %w", name, err)
			}
			value, has = strings.TrimRight(string(content), "\r\n"), true
		}
		switch {
		case name == "" || strings.ContainsAny(name, "\x00") || slices.Contains(secret[:], name) || strings.HasPrefix(name, "TANDEM_"):
			return nil, fmt.Errorf("--secret %s: %q cannot be the name of a secret: give NAME=FILE, or the NAME of a variable that does not begin with TANDEM_", one, name)
		case !has:
			return nil, fmt.Errorf("--secret %s: there is no variable %s in this environment: set it, or give %s=FILE", one, name, name)
		case len(value) < shortestSecret:
			return nil, fmt.Errorf("--secret %s: it has %d bytes: shorter ones than %d cannot be masked in logs", name, len(value), shortestSecret)
		case strings.ContainsRune(value, 0):
			return nil, fmt.Errorf("--secret %s: it contains a zero byte, which no variable can hold", name)
		}
		values[name] = value
	}
	return values, nil
}
