package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func readFranz(where wanted) error {
	isolation := kgo.ReadUncommitted()
	if where.Committed {
		isolation = kgo.ReadCommitted()
	}
	start := kgo.NewOffset().At(where.Start)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(where.Address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			where.Topic: {where.Partition: start},
		}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxWait(50*time.Millisecond),
		// They tell that the end is reached where no record of a user is the last one.
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		next, err := pollFranz(client, where.Partition)
		if err != nil || next < 0 || next >= where.End {
			return err
		}
	}
}

// pollFranz prints what arrives; it returns the next offset, -1 if nothing came for a while.
func pollFranz(client *kgo.Client, partition int32) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	next := int64(-1)
	fetches := client.PollFetches(ctx)
	if fetches.NumRecords() == 0 && ctx.Err() == nil {
		next = 0
	}
	fetches.EachRecord(func(record *kgo.Record) {
		next = record.Offset + 1
		if record.Attrs.IsControl() {
			return
		}
		headers := []header{}
		for _, each := range record.Headers {
			headers = append(headers, header{each.Key, each.Value})
		}
		say(line{
			"offset":        record.Offset,
			"timestamp":     milliseconds(record.Timestamp),
			"timestampType": record.Attrs.TimestampType(),
			"leaderEpoch":   max(record.LeaderEpoch, 0),
			"key":           record.Key,
			"value":         record.Value,
			"headers":       headers,
		})
	})
	for _, failed := range fetches.Errors() {
		// It tells of the topic's other partitions, too, where those have no leader.
		isOther := failed.Topic != "" && failed.Partition != partition
		if !isOther && !errors.Is(failed.Err, context.DeadlineExceeded) {
			return next, failed.Err
		}
	}
	return next, nil
}

func joinFranz(address string, group string, topics []string) {
	told := newReport()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.AutoCommitInterval(commit),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			told.add(p)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, c *kgo.Client, p map[string][]int32) {
			told.remove(p)
			if err := c.CommitUncommittedOffsets(ctx); err != nil {
				panic(err)
			}
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			told.remove(p)
		}),
	)
	if err != nil {
		panic(err)
	}
	for told.ctx.Err() == nil {
		client.PollFetches(told.ctx).EachRecord(func(record *kgo.Record) {
			told.read(record.Topic, record.Partition, record.Offset)
		})
	}
	client.Close()
}
