#include "bench/event_pool.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"
#include "common/http/gzip.hpp"
#include "support/sample_application.hpp"

namespace gitops::bench {
namespace {

namespace cp = control_plane_server;

constexpr int kResources = 6;  // an event of 10 KB
constexpr std::size_t kNamespaces = 20;
constexpr std::size_t kMilestonePercent = 30;
constexpr std::size_t kRepeatedPercent = 5;

// Returns a text of random hexadecimal digits that is always the same for a number.
std::string hex_of(std::uint64_t number, std::size_t digits) {
  std::mt19937_64 random(number);
  std::string text;
  std::array<char, 17> block{};
  while (text.size() < digits) {
    std::snprintf(block.data(), block.size(), "%016llx", static_cast<unsigned long long>(random()));
    text += block.data();
  }
  text.resize(digits);
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Removes the managed fields, which event-reporter does not send.
void remove_managed_fields(std::string& text) {
  const auto begin = text.find(R"("managedFields":[)");
  const auto end = text.find(R"(,"name":")", begin);
  if (begin == std::string::npos || end == std::string::npos) {
    throw std::logic_error("the sample has no managed fields");
  }
  text.erase(begin, end + 1 - begin);
}

// An Application with commits, images and times of its own.
std::string application_json(std::size_t application, std::size_t version) {
  const std::uint64_t seed = application * EventPool::kVersions + version;
  auto text =
      test::sample_application(application_namespace(application), application_name(application),
                               std::to_string(1'000'000 + seed), kResources);
  remove_managed_fields(text);
  replace_all(text, "5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b", hex_of(application, 40));
  replace_all(text, "7d1c3a52-0b6e-4b7e-9a43-", "7d1c3a52-0b6e-4b7e-" + hex_of(seed / 4, 4) + "-");
  replace_all(text, "shop/web:1.4.2", "shop/web@sha256:" + hex_of(application + 7, 64));
  char time[32];
  std::snprintf(time, sizeof time, "T09:%02d:%02dZ", static_cast<int>(seed / 60 % 60),
                static_cast<int>(seed % 60));
  replace_all(text, "T09:20:01Z", time);
  if (version >= EventPool::kVersions / 2) {
    replace_all(text, R"("status":"Healthy"},"history")", R"("status":"Progressing"},"history")");
  }
  if (application % 10 == 0) {
    replace_all(text, R"(,"status":"Synced"}}})", R"(,"status":"OutOfSync"}}})");
  }
  return text;
}

}  // namespace

std::string runtime_name(std::size_t runtime) {
  return "runtime-" + std::to_string(runtime);
}

std::string application_name(std::size_t application) {
  char name[32];
  std::snprintf(name, sizeof name, "application-%06zu", application);
  return name;
}

std::string application_namespace(std::size_t application) {
  return "team-" + std::to_string(application / 7 % kNamespaces);
}

std::string event_json(std::size_t application, std::size_t version) {
  const auto object = application_json(application, version);
  return R"({"data":{"timestamp":"2026-03-04T09:15:27.412Z","object":")" + base64_encode(object) +
         R"(","source":{"desiredManifest":"","actualManifest":)" + json_string(object) +
         R"(,"gitManifest":"","repoURL":"https://git.example.com/shop/deploy.git","path":"",)"
         R"("revision":"","commitMessage":"","commitAuthor":"","appName":"","appLabels":{},)"
         R"("syncStatus":"Synced","syncStartedAt":"2026-03-04T09:15:27Z",)"
         R"("syncFinishedAt":"2026-03-04T09:15:29Z","healthStatus":"Healthy","healthMessage":"",)"
         R"("cluster":"https://kubernetes.default.svc","historyId":0,"operationSyncRevision":"",)"
         R"("appUID":"","appNamespace":"","appInstanceLabelKey":"app.kubernetes.io/instance",)"
         R"("trackingMethod":"annotation"},"appVersions":{}}})";
}

cp::Incoming incoming_event(std::size_t application, std::size_t version, std::int64_t sequence,
                            std::size_t runtimes) {
  thread_local JsonParser parser(cp::EventLimits().max_depth);
  auto event = cp::read_event(parser, event_json(application, version),
                              {.event_id = hex_of(application, 36) + "/application/" +
                                           std::to_string(sequence) + "/" + hex_of(version, 16),
                               .sequence = sequence,
                               .runtime = runtime_name(application % runtimes),
                               .arrived_at = std::chrono::duration_cast<std::chrono::microseconds>(
                                                 wall_now().time_since_epoch())
                                                 .count()});
  if (!event) throw std::runtime_error(event.error().message);
  return {.account = 1, .reporter = "application", .event = std::move(*event)};
}

EventPool::EventPool(std::size_t applications, std::size_t runtimes)
    : runtimes_(runtimes), states_(applications), bodies_(applications * kVersions) {}

void EventPool::prepare() {
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (std::size_t first = 0; first < threads; ++first) {
    workers.emplace_back([this, first, threads] {
      for (std::size_t i = first; i < bodies_.size(); i += threads) {
        body_of(i / kVersions, i % kVersions);
      }
    });
  }
}

EventPool::Post EventPool::next() {
  return next_of(random_() % states_.size());
}

EventPool::Post EventPool::next_of(std::size_t application) {
  auto& state = states_[application];
  const auto roll = random_() % 100;
  if (state.sequence == 0) {
    state.sequence = kFirstSequence;
  } else if (roll < kMilestonePercent) {
    state.version = (state.version + kVersions / 2) % kVersions;
    ++state.sequence;
  } else if (roll < 100 - kRepeatedPercent) {
    state.version ^= 1U;
    ++state.sequence;
  }
  return {application, state.version, state.sequence, body_of(application, state.version)};
}

std::string_view EventPool::body_of(std::size_t application, std::size_t version) {
  auto& body = bodies_[application * kVersions + version];
  if (body.empty()) body = http::gzip_compress(event_json(application, version), 6);
  return body;
}

}  // namespace gitops::bench
