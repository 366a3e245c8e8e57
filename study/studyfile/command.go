package studyfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

const (
	maxArguments = 1_000
	// maxArgument bounds an argument and a variable's value; Linux takes 128 KiB.
	maxArgument = 64 << 10
	maxVariable = 1_000
)

// readCommand reads the argv of a script; a service's is its driver's.
func readCommand(s tree.Section, service *definition.Service) []string {
	n, at := s.Get("command")
	argv := readArgv(s, n, at, ", or leave command out for a study that your own process drives with ask and tell")
	if service == nil {
		return argv
	}
	driver, err := service.Command()
	section, sectionAt := s.Get("service")
	switch length := len(driver[len(driver)-1]); {
	case err != nil:
		s.Fault(sectionAt, section, "%v", err)
	case n != nil && !slices.Equal(argv, driver):
		s.Fault(at, n, "is given beside service: keep command for a script that reports, or service for a program that serves")
	case length > maxArgument:
		s.Fault(sectionAt, section, "has %d bytes as JSON: at most %d, so put long texts into files beside the study", length, maxArgument)
	}
	return driver
}

// mostProcesses is how many processes train one trial at most.
const mostProcesses = 64

// readProcesses reads how many processes of the command train together.
func readProcesses(s tree.Section, def definition.Definition) (count int) {
	s.Whole("processes", 1, mostProcesses, &count)
	if n, at := s.Get("processes"); n != nil && (len(def.Command) == 0 || def.Service != nil) {
		s.Fault(at, n, "is for a command that trains: without one, or beside service, leave it out")
		return 0
	}
	return count
}

// readArgv reads a program and its arguments; instead is what an empty one could be.
func readArgv(s tree.Section, n *tree.Node, at, instead string) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == tree.Null || n.Kind == tree.Mapping:
		s.Wrong(at, n, "a list of arguments")
		return nil
	case n.Kind != tree.List:
		s.Fault(at, n, "must be a list of arguments, as no shell reads it: write %s", asList(n.Raw))
		return nil
	case len(n.Items) == 0:
		s.Fault(at, n, "is empty: name the program%s", instead)
		return nil
	case len(n.Items) > maxArguments:
		s.Fault(at, n, "has %d arguments: at most %d", len(n.Items), maxArguments)
		return nil
	}
	var argv []string
	for i, item := range n.Items {
		argument, ok := s.Written(tree.Index(at, i), item, maxArgument)
		if ok && i == 0 && strings.TrimSpace(argument) == "" {
			s.Fault(tree.Index(at, i), item, "is empty: it must be the program to start")
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
		words = []string{"sh", "-c", tree.Shorten(line)}
	}
	for i, word := range words {
		words[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// readEnvironment reads variables. Faults never show a value: it may be a secret.
func readEnvironment(s tree.Section) map[string]string {
	n, at := s.Get("environment")
	if n == nil {
		return nil
	}
	if n.Kind != tree.Mapping {
		s.Wrong(at, n, "a mapping of names and values")
		return nil
	}
	if len(n.Entries) > maxVariable {
		s.Fault(at, n, "has %d variables: at most %d", len(n.Entries), maxVariable)
	}
	before := len(s.Faults)
	variables := make(map[string]string, len(n.Entries))
	for _, e := range n.Entries {
		if wrong := variableName(e.Key); wrong != "" {
			s.Fault(tree.Join(at, e.Key), &tree.Node{Line: e.Line}, "%s", wrong)
		}
		if value, ok := s.Written(tree.Join(at, e.Key), e.Value, maxArgument); ok {
			variables[e.Key] = value
		}
	}
	for i := range s.Faults[before:] {
		s.Faults[before+i].Value = nil
	}
	if len(variables) == 0 {
		return nil
	}
	return variables
}

// maxSecrets bounds the secrets of a study.
const maxSecrets = 100

// readSecrets reads names of variables whose values workers have.
func readSecrets(s tree.Section, environment map[string]string) []string {
	n, at := s.Get("secrets")
	if n == nil {
		return nil
	}
	if n.Kind != tree.List {
		s.Wrong(at, n, "a list of names, such as [HF_TOKEN]; workers' owners give the values with --secret HF_TOKEN=FILE")
		return nil
	}
	if len(n.Items) > maxSecrets {
		s.Fault(at, n, "has %d names: at most %d", len(n.Items), maxSecrets)
		return nil
	}
	var names []string
	for i, item := range n.Items {
		name, ok := s.Written(tree.Index(at, i), item, maxArgument)
		if !ok {
			continue
		}
		_, given := environment[name]
		switch wrong := variableName(name); {
		case wrong != "":
			s.Fault(tree.Index(at, i), item, "%s", wrong)
		case given:
			s.Fault(tree.Index(at, i), item, "is in environment too: a secret's value is the worker's")
		case slices.Contains(names, name):
			s.Fault(tree.Index(at, i), item, "is there twice")
		default:
			names = append(names, name)
		}
	}
	return names
}

// readSandbox reads what the study wants of the workers' sandbox.
func readSandbox(s tree.Section, processes int) string {
	wish, before := "", len(s.Faults)
	s.Text("sandbox", 16, &wish)
	n, at := s.Get("sandbox")
	if wish == "strict" && processes > 1 {
		s.Fault(at, n, "leaves no network, over which the %d processes of a trial find each other: leave out sandbox or processes", processes)
		return ""
	}
	if n != nil && len(s.Faults) == before && wish != "strict" {
		s.Fault(at, n, "must be strict, for a study that runs only where all layers of the sandbox hold, and without a network; leave it out for what each worker has")
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
