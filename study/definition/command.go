package definition

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxArguments = 1_000
	// maxArgument bounds an argument and a variable's value; Linux takes 128 KiB.
	maxArgument = 64 << 10
	maxVariable = 1_000
)

// command reads the argv.
func (d *decoder) command(s section) []string {
	n, at := s.get("command")
	switch {
	case n == nil:
		return nil
	case n.kind == null || n.kind == mapping:
		d.wrong(at, n, "a list of arguments")
		return nil
	case n.kind != list:
		d.fault(at, n, "must be a list of arguments, as no shell reads it: write %s", asList(n.raw))
		return nil
	case len(n.items) == 0:
		d.fault(at, n, "is empty: name the program, or leave command out for a study that your own process drives with ask and tell")
		return nil
	case len(n.items) > maxArguments:
		d.fault(at, n, "has %d arguments: at most %d", len(n.items), maxArguments)
		return nil
	}
	var argv []string
	for i, item := range n.items {
		argument, ok := d.written(index(at, i), item, maxArgument)
		if ok && i == 0 && strings.TrimSpace(argument) == "" {
			d.fault(index(at, i), item, "is empty: it must be the program to start")
		}
		argv = append(argv, argument)
	}
	return argv
}

// asList shows a command line as the list it should be: its words, or a shell
// if it needs one.
func asList(line string) string {
	words := strings.Fields(line)
	if strings.ContainsAny(line, "|&;<>$`*?\"'\\(){}[]~\n") || len(words) == 0 {
		words = []string{"sh", "-c", shorten(line)}
	}
	for i, word := range words {
		words[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// environment reads variables. Faults never show a value: it may be a secret.
func (d *decoder) environment(s section) map[string]string {
	n, at := s.get("environment")
	if n == nil {
		return nil
	}
	if n.kind != mapping {
		d.wrong(at, n, "a mapping of names and values")
		return nil
	}
	if len(n.entries) > maxVariable {
		d.fault(at, n, "has %d variables: at most %d", len(n.entries), maxVariable)
	}
	before := len(d.faults)
	variables := make(map[string]string, len(n.entries))
	for _, e := range n.entries {
		if wrong := variableName(e.key); wrong != "" {
			d.fault(join(at, e.key), &node{line: e.line}, "%s", wrong)
		}
		if value, ok := d.written(join(at, e.key), e.value, maxArgument); ok {
			variables[e.key] = value
		}
	}
	for i := range d.faults[before:] {
		d.faults[before+i].Value = nil
	}
	if len(variables) == 0 {
		return nil
	}
	return variables
}

// maxSecrets bounds the secrets of a study.
const maxSecrets = 100

// secrets reads names of variables whose values workers have.
func (d *decoder) secrets(s section, environment map[string]string) []string {
	n, at := s.get("secrets")
	if n == nil {
		return nil
	}
	if n.kind != list {
		d.wrong(at, n, "a list of names, such as [HF_TOKEN]; workers' owners give the values with --secret HF_TOKEN=FILE")
		return nil
	}
	if len(n.items) > maxSecrets {
		d.fault(at, n, "has %d names: at most %d", len(n.items), maxSecrets)
		return nil
	}
	var names []string
	for i, item := range n.items {
		name, ok := d.written(index(at, i), item, maxArgument)
		if !ok {
			continue
		}
		_, given := environment[name]
		switch wrong := variableName(name); {
		case wrong != "":
			d.fault(index(at, i), item, "%s", wrong)
		case given:
			d.fault(index(at, i), item, "is in environment too: a secret's value is the worker's")
		case slices.Contains(names, name):
			d.fault(index(at, i), item, "is there twice")
		default:
			names = append(names, name)
		}
	}
	return names
}

// sandbox reads what the study wants of the workers' sandbox.
func (d *decoder) sandbox(s section) string {
	wish, before := "", len(d.faults)
	s.text("sandbox", 16, &wish)
	if n, at := s.get("sandbox"); n != nil && len(d.faults) == before && wish != "strict" {
		d.fault(at, n, "must be strict, for a study that runs only where all layers of the sandbox hold, and without a network; leave it out for what each worker has")
		return ""
	}
	return wish
}

// variableName says what is wrong with a name, or nothing.
func variableName(name string) string {
	valid, _ := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]*$`, name)
	switch {
	case !valid:
		return "must be a name of letters, digits and _, and not begin with a digit"
	case strings.HasPrefix(strings.ToUpper(name), "TANDEM_"):
		return "is reserved: Tandem tells the command its trial in variables that begin with TANDEM_"
	case slices.Contains([]string{"LD_PRELOAD", "LD_AUDIT"}, name):
		return "would load code into the worker's own helpers too: begin the command with env " + name + "=..., so that it holds for the command alone"
	}
	return ""
}
