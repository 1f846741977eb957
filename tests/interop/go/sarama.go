package main

import (
	"time"

	"github.com/IBM/sarama"
)

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 50 * time.Millisecond
	return config
}

func readSarama(where wanted) error {
	config := saramaConfig()
	if where.Committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewConsumer([]string{where.Address}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	reader, err := client.ConsumePartition(where.Topic, where.Partition, where.Start)
	if err != nil {
		return err
	}
	defer reader.AsyncClose()
	for {
		select {
		case found := <-reader.Messages():
			sayMessage(found)
			if found.Offset+1 >= where.End {
				return nil
			}
		case failed := <-reader.Errors():
			return failed
		case <-time.After(quiet):
			return nil
		}
	}
}

func sayMessage(found *sarama.ConsumerMessage) {
	headers := []header{}
	for _, each := range found.Headers {
		headers = append(headers, header{string(each.Key), each.Value})
	}
	say(line{
		"offset":    found.Offset,
		"timestamp": milliseconds(found.Timestamp),
		"key":       found.Key,
		"value":     found.Value,
		"headers":   headers,
	})
}

// handler follows the claims of a session.
type handler struct{ told *report }

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	h.told.add(session.Claims())
	return nil
}

func (h handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.told.remove(session.Claims())
	return nil
}

func (h handler) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for found := range claim.Messages() {
		h.told.read(found.Topic, found.Partition, found.Offset)
		session.MarkMessage(found, "")
	}
	return nil
}

func joinSarama(address string, group string, topics []string) {
	config := saramaConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = commit
	config.Consumer.Group.Session.Timeout = session
	config.Consumer.Group.Heartbeat.Interval = heartbeat
	client, err := sarama.NewConsumerGroup([]string{address}, group, config)
	if err != nil {
		panic(err)
	}
	go func() {
		for range client.Errors() {
		}
	}()
	told := newReport()
	for told.ctx.Err() == nil {
		if err := client.Consume(told.ctx, topics, handler{told}); err != nil {
			panic(err)
		}
	}
	if err := client.Close(); err != nil {
		panic(err)
	}
}
