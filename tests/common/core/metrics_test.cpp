#include "common/core/metrics.hpp"

#include <chrono>
#include <sstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

namespace gitops {
namespace {

using testing::HasSubstr;

double value_of(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + ' ')) return std::stod(line.substr(series.size() + 1));
  }
  ADD_FAILURE() << series << " is missing in\n" << text;
  return -1;
}

TEST(Metrics, SameNameAndLabelsGiveTheSameHandle) {
  Metrics metrics;
  Counter& one = metrics.counter("gitops_test_sent_total", "Sent", {{"result", "ok"}});
  Counter& two = metrics.counter("gitops_test_sent_total", "Sent", {{"result", "ok"}});
  Counter& other = metrics.counter("gitops_test_sent_total", "Sent", {{"result", "error"}});
  EXPECT_EQ(&one, &two);
  EXPECT_NE(&one, &other);
  one.Increment();
  two.Increment(2);
  const std::string text = metrics.expose();
  EXPECT_EQ(value_of(text, R"(gitops_test_sent_total{result="ok"})"), 3);
  EXPECT_EQ(value_of(text, R"(gitops_test_sent_total{result="error"})"), 0);
}

TEST(Metrics, ExposesTextWithHelpAndType) {
  Metrics metrics;
  metrics.gauge("gitops_test_queue_keys", "Keys that wait").Set(12);
  Histogram& histogram = metrics.histogram("gitops_test_send_seconds", "Time to send", {0.1, 1});
  histogram.Observe(0.05);
  histogram.Observe(0.5);
  histogram.Observe(5);
  const std::string text = metrics.expose();
  EXPECT_THAT(text, HasSubstr("# HELP gitops_test_queue_keys Keys that wait\n"
                              "# TYPE gitops_test_queue_keys gauge\n"
                              "gitops_test_queue_keys 12\n"));
  EXPECT_EQ(value_of(text, R"(gitops_test_send_seconds_bucket{le="0.1"})"), 1);
  EXPECT_EQ(value_of(text, R"(gitops_test_send_seconds_bucket{le="1"})"), 2);
  EXPECT_EQ(value_of(text, R"(gitops_test_send_seconds_bucket{le="+Inf"})"), 3);
  EXPECT_EQ(value_of(text, "gitops_test_send_seconds_count"), 3);
}

TEST(Metrics, DescribesTheProcess) {
  Metrics metrics;
  const std::string text = metrics.expose();
  EXPECT_GT(value_of(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value_of(text, "process_virtual_memory_bytes"), 1e6);
  EXPECT_GE(value_of(text, "process_cpu_seconds_total"), 0);
  EXPECT_GE(value_of(text, "process_open_fds"), 3);
  EXPECT_GT(value_of(text, "process_max_fds"), value_of(text, "process_open_fds"));
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(value_of(text, "process_start_time_seconds"), now.count(), 600);
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter\n"));
}

TEST(Metrics, RefusesOneNameWithTwoTypes) {
  Metrics metrics;
  metrics.counter("gitops_test_things", "Things");
  EXPECT_THROW(metrics.gauge("gitops_test_things", "Things"), std::invalid_argument);
}

TEST(Metrics, EscapesLabelValues) {
  Metrics metrics;
  metrics.counter("gitops_test_total", "Test", {{"part", "a\"b\\c\nd"}}).Increment();
  EXPECT_THAT(metrics.expose(), HasSubstr(R"(gitops_test_total{part="a\"b\\c\nd"} 1)"));
}

}  // namespace
}  // namespace gitops
