package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// notCompared are the fields that are left out of Memory: locks, what the service is
// made of, what is worked out again whenever it is asked for, and what was heard of
// workers and what they sent, which a change that is refused does not take back.
var notCompared = map[string]bool{
	"Service.store": true, "parts.store": true, "Service.logs": true, "Service.options": true, "parts.options": true, "Registry.changed": true, "state.counted": true, "Service.scheduler": true, "Governor.allocator": true,
	"state.lastTick": true, "state.began": true, "Allocator.Workers": true, "Allocator.Placements": true, "Allocator.Rules": true, "Allocator.Migrations": true, "Service.deployed": true, "Service.fits": true, "Service.makes": true, "Queries.store": true, "Service.studies": true, "Service.queries": true, "Service.viewed": true, "Service.parts": true, "Service.on": true, "knowledge.parts": true, "leases.parts": true, "leases.logs": true, "leases.scheduler": true, "leases.truth": true, "leases.Uploads": true, "leases.sharing": true, "Registry.store": true, "Registry.options": true, "Session.options": true,
	"Session.newest": true, "Session.Loads": true, "Session.Used": true, "Session.Stale": true, "Session.summary": true, "State.Method": true,
	"State.ready": true, "Session.durable": true, "Usage.usual": true, "Usage.architectures": true, "Usage.earlier": true, "Model.store": true, "Model.options": true,
	"Migration.Partner": true, "Machine.starts": true, "Machine.recent": true, "Service.deciding": true, "Service.learned": true, "Service.changes": true, "Service.idle": true, "Base.store": true, "Base.changes": true, "Leases.changes": true, "Leases.tickets": true,
	"Model.basis": true, "Lease.Deadline": true, "Member.LastSeen": true, "Member.Short": true, "Keeping.Awaited": true,
}

// Memory is all that the service has in memory, a line for each value, so that a test
// finds also what is added to it later. Searches are as they would be stored.
func Memory(s *Service) []string {
	var lines []string
	for r := range s.sessions.Each() {
		if r.Method != nil {
			state, err := r.Method.Snapshot()
			lines = append(lines, fmt.Sprintf("search of %s: %s %v", r.ID, state, err))
		}
	}
	var d dump
	d.value("", reflect.ValueOf(s).Elem())
	d.value("", reflect.ValueOf(s.parts))
	lines = append(lines, d.lines...)
	slices.Sort(lines)
	return lines
}

type dump struct{ lines []string }

func (d *dump) value(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			d.value(path, v.Elem())
		}
	case reflect.Struct:
		d.structure(path, v)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			d.value(path+"["+flat(key)+"]", v.MapIndex(key))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			d.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		if !v.IsZero() {
			d.lines = append(d.lines, path+" = "+flat(v))
		}
	}
}

func (d *dump) structure(path string, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if !v.IsZero() {
			d.lines = append(d.lines, path+" = "+moment(v))
		}
		return
	}
	if strings.HasPrefix(v.Type().PkgPath(), "sync") {
		return
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !notCompared[v.Type().Name()+"."+name] {
			d.value(path+"."+name, v.Field(i))
		}
	}
}

// flat is a value without others in it, which may be of a field that is not exported.
func flat(v reflect.Value) string { return fmt.Sprintf("%+v", v) }

// moment is a time, whether it has a monotonic part or not.
func moment(v reflect.Value) string {
	wall, ext := v.FieldByName("wall").Uint(), v.FieldByName("ext").Int()
	if wall>>63 == 1 {
		const from1885 = (1884*365 + 1884/4 - 1884/100 + 1884/400) * 86400
		ext = from1885 + int64(wall<<1>>31)
	}
	return fmt.Sprintf("%d.%09d", ext, wall&(1<<30-1))
}

// Woken says whether anybody was woken since.
func Woken(s *Service) func() bool {
	changed := s.sessions.Changes()
	return func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
}
