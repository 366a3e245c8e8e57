package api

import (
	"context"

	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/web/guard"
)

// backendRoutes are the routes of backends.
func (s knowledgeAPI) backendRoutes() []route {
	const backends = prefix + "/backends"
	return []route{
		{"GET", backends, guard.Readers, 200, guard.Call, "list-backends", "List the backends, the places to deploy at a price", handle(s.server, ofList(s.studies.Backends, func(list []backend.Backend) backendList { return backendList{list} })), nil},
		{"PUT", backends + "/{backend}", guard.Admins, 200, guard.Call, "set-backend", "Add a backend, or replace it", handle(s.server, s.setBackend), nil},
		{"DELETE", backends + "/{backend}", guard.Admins, 204, guard.Call, "remove-backend", "Remove a backend", handle(s.server, remove[BackendRef](s.studies.RemoveBackend)), nil},
		{"GET", studyPath + "/backend", guard.Readers, 200, guard.Call, "choose-backend", "Say on which backend a model of the study is served best within its bounds", handle(s.server, s.chooseBackend), nil},
	}
}

type backendList struct {
	Backends []backend.Backend `json:"backends"`
}

// BackendRef names a backend in a path.
type BackendRef struct {
	Backend string `path:"backend" maxLength:"64" doc:"the backend's name"`
}

type backendInput struct {
	BackendRef
	Content[backend.BackendOffer]
}

func (s knowledgeAPI) setBackend(ctx context.Context, input *backendInput) (*jsonAnswer[backend.Backend], error) {
	return answered(s.studies.SetBackend(ctx, input.Backend, input.Body))
}

type choiceInput struct {
	StudyRef
	Trial    int    `query:"trial" default:"-1" minimum:"-1" doc:"the number of a trial; -1 or absent: the recommended one"`
	Priority string `query:"priority" maxLength:"256" doc:"weights of cost, latency and energy, such as latency=2,energy=1; absent: cost, or energy where the study's objective for deployments is that"`
}

func (s knowledgeAPI) chooseBackend(ctx context.Context, input *choiceInput) (*jsonAnswer[backend.BackendChoice], error) {
	var number *int
	if input.Trial >= 0 {
		number = &input.Trial
	}
	return answered(s.studies.ChooseBackend(ctx, input.Study, number, input.Priority))
}
