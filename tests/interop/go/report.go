package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// As in tests/interop/group_member.py.
const (
	session   = 2 * time.Second
	heartbeat = 300 * time.Millisecond
	commit    = 200 * time.Millisecond
)

// report prints what a member has now and what it has read, whenever something is new.
type report struct {
	ctx      context.Context
	mutex    sync.Mutex
	assigned []string
	offsets  map[string][2]int64
}

func newReport() *report {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() { // a test that is killed leaves no member behind
		for os.Getppid() > 1 {
			time.Sleep(time.Second)
		}
		os.Exit(1)
	}()
	return &report{ctx: ctx, assigned: []string{}, offsets: map[string][2]int64{}}
}

func (r *report) add(partitions map[string][]int32) {
	r.change(partitions, func(name string) { r.assigned = append(r.assigned, name) })
}

func (r *report) remove(partitions map[string][]int32) {
	r.change(partitions, func(name string) {
		r.assigned = slices.DeleteFunc(r.assigned, func(each string) bool { return each == name })
	})
}

func (r *report) change(partitions map[string][]int32, do func(string)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			do(fmt.Sprintf("%s-%d", topic, number))
		}
	}
	slices.Sort(r.assigned)
	r.say()
}

func (r *report) read(topic string, partition int32, offset int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name := fmt.Sprintf("%s-%d", topic, partition)
	first, ok := r.offsets[name]
	if !ok {
		first[0] = offset
	}
	r.offsets[name] = [2]int64{first[0], offset + 1}
	r.say()
}

func (r *report) say() {
	say(line{"assigned": r.assigned, "read": r.offsets})
}
