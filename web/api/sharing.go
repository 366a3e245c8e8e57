package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/guard"
)

// sharingRoutes are the routes of quotas, reservations and drains.
func (s sharingAPI) sharingRoutes() []route {
	const quotaPath, reservations = prefix + "/quotas/{user}", prefix + "/reservations"
	return []route{
		{"GET", prefix + "/quotas", guard.Readers, 200, guard.Call, "list-quotas", "List the users' quotas with what their trials have; a user sees its own", handle(s.server, ofList(s.studies.Quotas, func(list []protocol.QuotaView) quotaList { return quotaList{list} })), nil},
		{"PUT", quotaPath, guard.Admins, 200, guard.Call, "set-quota", "Bound what a user has of the workers", handle(s.server, s.setQuota), nil},
		{"DELETE", quotaPath, guard.Admins, 204, guard.Call, "remove-quota", "Let a user have what there is", handle(s.server, remove[UserRef](s.studies.RemoveQuota)), nil},
		{"GET", reservations, guard.Readers, 200, guard.Call, "list-reservations", "List what is kept of the workers for somebody, by when it begins", handle(s.server, ofList(s.studies.Reservations, func(list []protocol.Reservation) reservationList { return reservationList{list} })), nil},
		{"POST", reservations, guard.Admins, 201, guard.Call, "make-reservation", "Keep a worker, or some GPUs, for a user or a study from a time to a time", handle(s.server, ofBody(s.studies.Reserve)), nil},
		{"DELETE", reservations + "/{reservation}", guard.Admins, 204, guard.Call, "remove-reservation", "End a reservation before its time", handle(s.server, remove[ReservationRef](s.studies.Unreserve)), nil},
		{"POST", workerPath + "/drain", guard.Owners, 200, guard.Call, "drain-worker", "Give a worker no more trials, and let those that it runs go on elsewhere if that is asked for", handle(s.server, s.drainWorker), nil},
		{"DELETE", workerPath + "/drain", guard.Owners, 200, guard.Call, "undrain-worker", "Give a drained worker trials again", handle(s.server, ofNamed[NamedWorkerRef](s.studies.Undrain)), nil},
	}
}

type quotaList struct {
	Quotas []protocol.QuotaView `json:"quotas"`
}

// UserRef names a user in a path.
type UserRef struct {
	User string `path:"user" maxLength:"128" doc:"a user's name, or admin for the administrators"`
}

type quotaInput struct {
	UserRef
	Content[protocol.Quota]
}

func (s sharingAPI) setQuota(ctx context.Context, input *quotaInput) (*jsonAnswer[protocol.QuotaView], error) {
	return answered(s.studies.SetQuota(ctx, input.User, input.Body))
}

type reservationList struct {
	Reservations []protocol.Reservation `json:"reservations"`
}

// ReservationRef names a reservation in a path.
type ReservationRef struct {
	Reservation string `path:"reservation" maxLength:"64" doc:"the reservation's id, as the list shows it"`
}

// NamedWorkerRef names workers in a path, by what people call them too.
type NamedWorkerRef struct {
	Worker string `path:"worker" maxLength:"128" doc:"the id that the worker registered with, or its name"`
}

type drainInput struct {
	NamedWorkerRef
	Content[protocol.DrainRequest]
}

func (s sharingAPI) drainWorker(ctx context.Context, input *drainInput) (*jsonAnswer[protocol.Drained], error) {
	return answered(s.studies.Drain(ctx, input.Worker, input.Body))
}
