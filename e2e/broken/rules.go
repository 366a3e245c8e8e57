package main

const simulation = "./e2e/simulation -run TestNothingIsLostAndNothingCountsTwice"

// rules are the promises that docs/reliability.md makes.
var rules = []rule{
	{
		name: "fencing: a write under an old lease",
		edits: []edit{{"study/worker.go",
			"if t.LeaseEpoch != epoch || !t.State.Held() && !t.State.Terminal() {",
			"if t.LeaseEpoch < 0 {"}},
		tests: []string{simulation},
	},
	{
		name: "idempotency: a call that is repeated is made again",
		edits: []edit{{"web/guard/call.go",
			"if err == nil && found.Kind != Secret {",
			"if err == nil && found.Kind == Secret {"}},
		tests: []string{"./web/api -run TestSameKeyGetsTheSameAnswer"},
	},
	{
		name: "durability: synchronous=NORMAL",
		edits: []edit{
			{"store/sqlite/dbfile/connect.go", `"_synchronous": {"full"},`, `"_synchronous": {"normal"},`},
			{"store/sqlite/dbfile/connect.go", `{"synchronous", "2"}, // FULL`, `{"synchronous", "1"},`},
		},
		tests: []string{"./store/sqlite -run Power|TestWhatPromisesStandOnIsOn"},
	},
	{
		name: "acknowledged before it is committed",
		edits: []edit{
			{"study/journal/outcome.go", "	o.err = err\n	close(o.known)", "	defer func() { _ = recover() }() // told before\n	close(o.known)"},
			{"store/sqlite/writer.go", "		outcomes, err = w.session.transact(group)", "		for _, one := range group {\n			one.outcome.Settle(nil)\n		}\n		time.Sleep(20 * time.Millisecond)\n		outcomes, err = w.session.transact(group)"},
			{"store/sqlite/writer.go", "	\"sync/atomic\"\n", "	\"sync/atomic\"\n	\"time\"\n"},
		},
		tests: []string{"./store/sqlite -run TestKilledServerLosesNothingItAcknowledged", "./e2e -run TestAStormLosesNothing"},
	},
	{
		name: "a lost trial is queued again in a second transaction",
		edits: []edit{
			{"study/session/finish.go", "	t.Finished = nil\n	waits :=", "	if t.Losses > 0 {\n		return nil\n	}\n	t.Finished = nil\n	waits :="},
			{"study/finish.go",
				"	tx.Then(func() { s.release(lease) })\n	return s.sessions.Commit(ctx, tx, nil)\n",
				"	tx.Then(func() { s.release(lease) })\n	if err := s.sessions.Commit(ctx, tx, nil); err != nil {\n		return err\n	}\n" + requeueLater + "	return nil\n"},
		},
		tests: []string{simulation},
	},
	{
		name: "leases by the wall clock",
		edits: []edit{{"study/service.go",
			"	if options.Logger == nil {",
			"	clock := options.Now\n	options.Now = func() time.Time { return clock().Round(0) }\n	if options.Logger == nil {"}},
		tests: []string{"./study -run TestTheWallClockDecidesNothing"},
	},
	{
		name:  "NaN as null",
		edits: []edit{{"trial/float.go", "return []byte(`\"NaN\"`), nil", "return []byte(`null`), nil"}},
		tests: []string{simulation},
	},
	{
		name:  "a route outside of the tokens",
		edits: []edit{{"web/guard/guard.go", "origin.Local(r))", "origin.Local(r) || strings.HasSuffix(r.URL.Path, \"/export\"))"}},
		tests: []string{"./web/api -run TestEveryRouteIsOpenToItsScopesOnly"},
	},
	{
		name:  "any Host",
		edits: []edit{{"web/guard/guard.go", "if err := g.hosts.Admit(r); err != nil {", "if err := g.hosts.Admit(r); err != nil && r.Host == \"\" {"}},
		tests: []string{"./web/api -run TestForeignHostsAreRefused"},
	},
	{
		name:  "memory beside the store after a panic",
		edits: []edit{{"study/session/session.go", "	if cause != nil {\n		r.Stale = true\n	}\n", ""}},
		tests: []string{"./study -run TestAPanicLeavesNothingBesideTheStore"},
	},
	{
		name:  "a lease that was committed is called nothing",
		edits: []edit{{"study/lease.go", "case errors.As(err, new(unsettled)):", "case errors.As(err, new(unsettled)) && false:"}},
		tests: []string{"./study -run TestALeaseThatWasMadeAndDeniedIsNotCalledNothing"},
	},
	{
		name: "a report counts each time it comes",
		edits: []edit{
			{"study/report.go", "	if !fresh && t.State == trial.Running {", "	fresh = true\n	if !fresh && t.State == trial.Running {"},
		},
		tests: []string{simulation},
	},
	{
		name: "a checkpoint of nobody's bytes",
		edits: []edit{{"study/report.go",
			"	if err := s.CheckUpload(ctx, t, commitment, r.Study.Definition.Encryption != nil); err != nil {",
			"	if err := s.CheckUpload(ctx, t, commitment, r.Study.Definition.Encryption != nil); err != nil && commitment.Bytes < 0 {"}},
		tests: []string{"./web/api -run TestCheckpointsAreOfWhatWasUploaded"},
	},
	{
		name:  "tuning: no profile is similar to another",
		edits: []edit{{"similarity/memory.go", "	if found.Similar {\n", "	found.Similar = false\n	if found.Similar {\n"}},
		tests: []string{"./e2e -run TestTheSystemIsTunedWhileTrialsTrain"},
	},
	{
		name:  "tuning: nothing is known of the study and the script",
		edits: []edit{{"similarity/memory.go", "	return study, script\n}", "	return nil, nil\n}"}},
		tests: []string{"./e2e -run TestTheSystemIsTunedWhileTrialsTrain"},
	},
	{
		name:  "tuning: runs that compare nothing push out those that do",
		edits: []edit{{"similarity/memory.go", "			slices.SortFunc(*list, dispensable)\n", "			slices.SortFunc(*list, older)\n"}},
		tests: []string{"./similarity/reuse -run TestWhatComparesConfigurationsIsNotForgotten"},
	},
	{
		name:  "tuning: an epoch that loads code is evidence",
		edits: []edit{{"similarity/reuse/epoch.go", "	if len(code) == 0 {\n", "	if len(code) < 99 {\n"}},
		tests: []string{"./similarity/reuse -run TestAnEpochThatLoadsCodeIsNoEvidence"},
	},
	{
		name:  "tuning: runs of another workload count because the script is the same",
		edits: []edit{{"similarity/reuse/unlike.go", "	return most-least <= unlike, shared > 1", "	return true, shared > 1"}},
		tests: []string{"./similarity/reuse -run TestAScriptThatTrainsAnotherWorkloadIsNotReused"},
	},
	{
		name:  "tuning: a script whose files changed is the same script",
		edits: []edit{{"similarity/memory.go", "(of.Code == \"\" || r.Code", "(true || r.Code"}},
		tests: []string{"./similarity/reuse -run TestAChangedScriptIsSimilarAtMost"},
	},
	{
		name:  "tuning: no comparison with the default is made",
		edits: []edit{{"similarity/reuse/control.go", "	case !settled || d.input.Left <= needed", "	case !settled || d.input.Left >= 0"}},
		tests: []string{"./e2e -run TestASavingIsMeasuredOrNotClaimed"},
	},
	{
		name:  "tuning: trials that share a machine make no comparison",
		edits: []edit{{"similarity/reuse/control.go", "	return at.Elastic && d.input", "	return !at.Elastic && d.input"}},
		tests: []string{"./study -run TestASavingIsClaimedOnASharedMachine"},
	},
	{
		name:  "encryption: a data set is not compared with its SHA-256",
		edits: []edit{{"workers/agent/artifact/dataset.go", "	case actual != hash:\n", "	case actual == \"\":\n"}},
		tests: []string{"./workers/agent/artifact -run TestDataSetsThatAreNotTheOnesAreRefused"},
	},
	{
		name:  "launchers: a study counts whose key the workers lack",
		edits: []edit{{"workers/launcher/planner.go", "why != \"\" {\n", "why == \"?\" {\n"}},
		tests: []string{"./workers/launcher/launchertest -run TestFake"},
	},
	{
		name:  "tuning: a saving is claimed though its interval holds zero",
		edits: []edit{{"similarity/reuse/control.go", "	if !enough || math.Abs(mean) <= half {", "	if !enough {"}},
		tests: []string{"./similarity/reuse -run TestAScriptThatIgnoresItsKnobsSavesNothing"},
	},
}

// requeueLater is what Optuna does: the retry comes behind the commit.
const requeueLater = `	if now := r.Trials[t.Number]; now.State == trial.Lost && now.Losses < 20 && len(now.LostOn) < 3 {
		tx = r.Begin()
		now.Finished = nil
		if now, err = now.To(trial.Queued, "later"); err != nil {
			return err
		}
		tx.Stage(now)
		if err := s.sessions.Commit(ctx, tx, nil); err != nil {
			return err
		}
	}
`
