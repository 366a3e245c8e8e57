package studyfile

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readService reads the section of a program that is tuned while it serves; nil where
// there is none.
func readService(s tree.Section) *definition.Service {
	n, at := s.Get("service")
	if n == nil {
		return nil
	}
	one := &definition.Service{WarmUp: 1, Ready: definition.Ready{Seconds: 60}, Stop: definition.StopSignal{Signal: "TERM", Seconds: 10}}
	s, ok := s.Open(at, n, "start", "ready", "load", "metrics", "warm_up", "live", "apply", "environment", "files", "stop")
	if !ok {
		return one
	}
	if n, at := s.Need("start", "the program and its arguments, such as [postgres, -D, \"{directory}\"]"); n != nil {
		one.Start = readArgv(s, n, at, "")
	}
	if n, at := s.Need("load", "the program that puts load on the service for one window, and prints what it measured"); n != nil {
		one.Load = readArgv(s, n, at, "")
	}
	if n, at := s.Need("ready", "how to see that the service takes load: tcp, http or command, such as {tcp: \"127.0.0.1:{port}\"}"); n != nil {
		readReady(s.Decoder, at, n, &one.Ready)
	}
	s.Whole("warm_up", 0, 100, &one.WarmUp)
	one.Metrics = readPatterns(s)
	one.Environment = readEnvironment(s)
	one.Files = readTexts(s, "files")
	readLive(s, one)
	if s, ok := s.Part("stop", "signal", "seconds"); ok {
		s.Text("signal", tree.MaxKey, &one.Stop.Signal)
		s.Number("seconds", 0, 3600, &one.Stop.Seconds)
		if n, at := s.Get("signal"); n != nil && !slices.Contains([]string{"TERM", "INT", "QUIT"}, one.Stop.Signal) {
			s.Fault(at, n, "must be TERM, INT or QUIT")
		}
	}
	return one
}

func readReady(d *tree.Decoder, at string, n *tree.Node, ready *definition.Ready) {
	s, ok := d.Open(at, n, "tcp", "http", "command", "seconds")
	if !ok {
		return
	}
	s.Text("tcp", tree.MaxKey, &ready.TCP)
	s.Text("http", 4096, &ready.HTTP)
	s.Number("seconds", 0.1, 24*3600, &ready.Seconds)
	command, commandAt := s.Get("command")
	ready.Command = readArgv(s, command, commandAt, "")
	given := 0
	for _, name := range []string{"tcp", "http", "command"} {
		if n, _ := s.Get(name); n != nil {
			given++
		}
	}
	if given != 1 {
		d.Fault(at, n, "has %d of tcp, http and command: give one of the three", given)
	}
	if ready.HTTP != "" && !strings.HasPrefix(ready.HTTP, "http://") && !strings.HasPrefix(ready.HTTP, "https://") {
		httpNode, httpAt := s.Get("http")
		d.Fault(httpAt, httpNode, "must be a URL that begins with http:// or https://")
	}
}

// readPatterns reads what is looked for in the output of the load.
func readPatterns(s tree.Section) map[string]string {
	patterns := readTexts(s, "metrics")
	n, at := s.Get("metrics")
	if patterns == nil {
		return nil
	}
	for _, e := range n.Entries {
		var name string
		readMetric(s.Decoder, tree.Join(at, e.Key), &tree.Node{Kind: tree.Text, Raw: e.Key, Line: e.Line}, &name)
		pattern, err := regexp.Compile(patterns[e.Key])
		switch {
		case err != nil:
			s.Fault(tree.Join(at, e.Key), e.Value, "is no regular expression (RE2): %v", err)
		case pattern.NumSubexp() != 1:
			s.Fault(tree.Join(at, e.Key), e.Value, "has %d groups: put ( ) around the number, and (?: ) around other groups", pattern.NumSubexp())
		case e.Key == "windows" || strings.HasSuffix(e.Key, ".half_width"):
			s.Fault(tree.Join(at, e.Key), e.Value, "is a metric that Tandem adds: give it another name")
		}
	}
	return patterns
}

// readTexts reads a mapping of names to texts.
func readTexts(s tree.Section, field string) map[string]string {
	n, at := s.Get(field)
	if n == nil {
		return nil
	}
	if n.Kind != tree.Mapping || len(n.Entries) == 0 || len(n.Entries) > maxVariable {
		s.Fault(at, n, "must be a mapping of 1 to %d names to texts", maxVariable)
		return nil
	}
	texts := make(map[string]string, len(n.Entries))
	for _, e := range n.Entries {
		if text, ok := s.Written(tree.Join(at, e.Key), e.Value, maxArgument); ok {
			texts[e.Key] = text
		}
	}
	return texts
}

// readLive reads which parameters are changed while the service runs, and how.
func readLive(s tree.Section, one *definition.Service) {
	n, at := s.Get("live")
	apply, applyAt := s.Get("apply")
	switch {
	case n == nil && apply == nil:
		return
	case n == nil:
		s.Fault(applyAt, apply, "needs live: the names of the parameters that it changes while the service runs")
		return
	case apply == nil:
		s.Fault(at, n, "needs apply: the program that changes them while the service runs, such as [sh, reload.sh, \"{work_mem}\"]")
		return
	case n.Kind != tree.List || len(n.Items) == 0:
		s.Wrong(at, n, "a list of parameters, such as [work_mem]")
		return
	}
	one.Apply = readArgv(s, apply, applyAt, "")
	for i, item := range n.Items {
		name := ""
		s.TextOf(tree.Index(at, i), item, tree.MaxKey, &name)
		one.Live = append(one.Live, name)
	}
}

// checkService checks what the rest of the study says of a service.
func checkService(s tree.Section, def *definition.Definition) {
	one := def.Service
	if one == nil {
		return
	}
	refuse := func(field, why string) {
		if n, at := s.Get(field); n != nil {
			s.Fault(at, n, "%s", why)
		}
	}
	if n, at := s.Get("system"); n != nil && (def.System.Word == definition.Automatic || def.System.Tuning != nil) {
		s.Fault(at, n, "would be tuned, which is for scripts: put what a service can be given into space; constants such as cores: 2 may stay")
	}
	if n, _ := s.Get("system"); n == nil {
		def.System.Word = definition.Off
	}
	refuse("inference", "needs models that scripts save, and a service saves none: leave it out, and measure an inference server's latency with service.load")
	refuse("approximation", "leaves out data, and a service has none: leave it out")
	if b := def.Budget; b.DataFraction.Min != 1 || b.DataFraction.Max != 1 {
		refuse("budget", "has a data_fraction, and a service has no data: give epochs, which are windows, or seconds")
	}
	if n, _ := s.Get("parallel"); n == nil {
		def.Parallel = 1 // two on one machine would measure each other
	}
	section, at := s.Get("service")
	if def.Sandbox != "" && len(one.Ready.Command) == 0 {
		s.Fault(tree.Join(at, "ready"), section, "asks over the network, of which sandbox: strict leaves nothing, not even within the trial: give command, and let the service listen at a socket in {directory}")
	}
	s = tree.Section{Decoder: s.Decoder, Path: at, Node: section}
	checkTemplates(s, def)
	if len(one.Metrics) == 0 {
		return
	}
	needed := []string{}
	for _, o := range def.Objectives {
		needed = append(needed, o.Metric)
	}
	for _, c := range def.Constraints {
		needed = append(needed, c.Metric)
	}
	for _, name := range needed {
		base := strings.TrimSuffix(name, ".half_width")
		if _, has := one.Metrics[base]; !has && name != "" && name != "windows" {
			n, at := s.Get("metrics")
			s.Fault(at, n, "lacks %s, which the study needs: add its pattern, such as %s: 'p99 ([0-9.]+)'", name, base)
		}
	}
}

// checkTemplates checks the names in braces, and those of live parameters and files.
func checkTemplates(s tree.Section, def *definition.Definition) {
	one := def.Service
	check := func(field string, texts ...string) {
		n, at := s.Get(field)
		for _, text := range texts {
			definition.Fill(text, func(name string) string {
				p, has := def.Space.Parameter(name)
				switch {
				case name == definition.ServicePort || name == definition.ServiceDirectory:
				case !has:
					s.Fault(at, n, "has {%s}, which is no parameter of space, nor port nor directory: write {{%s}} for the text in braces", name, name)
				case len(p.When) > 0:
					s.Fault(at, n, "has {%s}, which only some trials have (when): let a script read it from TANDEM_PARAMS", name)
				}
				return ""
			})
		}
	}
	check("start", one.Start...)
	check("load", one.Load...)
	check("apply", one.Apply...)
	check("ready", append(slices.Clone(one.Ready.Command), one.Ready.TCP, one.Ready.HTTP)...)
	check("environment", slices.Collect(maps.Values(one.Environment))...)
	check("files", slices.Collect(maps.Values(one.Files))...)
	for _, path := range slices.Sorted(maps.Keys(one.Files)) {
		if n, at := s.Get("files"); !filepath.IsLocal(path) {
			s.Fault(at, n, "has the path %q, which leads out of {directory}: give one below it, such as conf/server.conf", path)
		}
	}
	for i, name := range one.Live {
		if _, has := def.Space.Parameter(name); !has {
			n, at := s.Get("live")
			s.Fault(tree.Index(at, i), n, "names %q, which is no parameter of space", name)
		}
	}
	for _, name := range []string{definition.ServicePort, definition.ServiceDirectory} {
		if _, has := def.Space.Parameter(name); has {
			s.Fault(s.Path, s.Node, "has {%s} for itself: give the parameter of that name in space another one", name)
		}
	}
}
