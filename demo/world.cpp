#include "world.hpp"

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "peers/bus_subscription.hpp"
#include "peers/peer_argocd.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/peer_events.hpp"
#include "support/postgres_server.hpp"
#include "support/run_on.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::demo {

namespace {

template <class T>
void require(const Result<T>& result) {
  if (!result) throw Failure(result.error().message);
}

// Returns the value of a key of a Secret; empty when it is absent.
std::string value_in(const nlohmann::json& secret, const std::string& key) {
  const auto text = secret.value("/data"_json_pointer / key, "");
  return base64_decode(text).value_or("");
}

}  // namespace

Task<World> embedded_world(const test::GitServer& git) {
  // The doubles require no token, since kubectl sends none over plain HTTP.
  struct Doubles {
    explicit Doubles(const Executor& executor)
        : cluster(executor), argocd(executor, cluster), folder("gitops-demo-cluster") {}
    test::FakeKubeApi cluster;
    test::FakeArgoCd argocd;
    test::RecordingUpstream event_source{"event source"};
    test::TempDir folder;
  };
  const auto doubles = std::make_shared<Doubles>(co_await asio::this_coro::executor);
  require(doubles->cluster.start());
  require(doubles->argocd.start());
  test::write_file(doubles->folder / "kubeconfig", doubles->cluster.kubeconfig());
  const test::FakeArgoCd::Options argocd;
  doubles->cluster.put(k8s::resources::kConfigMaps,
                       {{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", {{"name", "argocd-cm"}, {"namespace", argocd.ns}}}});

  World world;
  world.description =
      "in-memory doubles of Kubernetes, Argo CD and an event source; a real Git server";
  world.kubernetes_url = doubles->cluster.url().to_string();
  world.argocd_url = doubles->argocd.url().to_string();
  world.argocd_token = argocd.token;
  world.kubeconfig = (doubles->folder / "kubeconfig").string();
  world.app_namespace = argocd.ns;
  world.kubectl = test::find_program("kubectl").value_or("");
  world.create_app = [doubles, &git](std::string name, std::string repository) -> Task<> {
    test::FakeArgoCd::App app{.name = std::move(name), .repo_url = std::move(repository)};
    app.git_username = git.username();
    app.git_password = git.password();
    app.destination_namespace = kDestination;
    app.labels = {{"team", "shop"}};
    require(co_await doubles->argocd.create_app(std::move(app)));
  };
  world.sync = [doubles](std::string name, std::string) -> Task<> {
    require(co_await doubles->argocd.sync(name));
  };
  world.delete_app = [doubles](std::string name) -> Task<> {
    require(doubles->argocd.delete_app(name));
    co_return;
  };
  world.secret = [doubles, ns = argocd.ns](std::string name, std::string key) -> Task<std::string> {
    const auto secret = doubles->cluster.find(k8s::resources::kSecrets, {ns, name});
    co_return secret ? value_in(*secret, key) : std::string();
  };
  world.reads = [doubles]() -> Task<World::Reads> {
    const auto reads = doubles->argocd.reads();
    const World::Reads result{reads.tree, reads.managed, reads.revisions};
    co_return result;
  };
  world.event_source_port = doubles->event_source.port();
  world.events = [doubles] {
    std::vector<std::string> bodies;
    for (const auto& request : doubles->event_source.requests()) bodies.push_back(request.body);
    return bodies;
  };
  world.stop = [doubles]() -> Task<> {
    co_await doubles->argocd.stop();
    co_await doubles->cluster.stop();
  };
  co_return world;
}

namespace {

// Receives the messages on the bus of Argo Events. Call stop() before the destructor.
struct BusReader {
  explicit BusReader(const Executor& executor) : subscription(executor), tasks(executor) {}

  Task<> start(int port) {
    require(co_await subscription.open(port, "default.github.>",
                                       deadline_after(std::chrono::seconds(10))));
    tasks.spawn("bus", [this]() -> Task<> {
      while (true) {
        const auto message = co_await subscription.next(kNever);
        require(message);
        const auto data = nlohmann::json::parse(test::PeerEvents::data_of(message->payload));
        bodies.push_back(data.at("body").dump());
      }
    });
  }
  Task<> stop() {
    tasks.cancel();
    co_await tasks.join();
  }

  test::BusSubscription subscription;
  std::vector<std::string> bodies;
  TaskGroup tasks;
};

}  // namespace

std::function<Task<World>(asio::thread_pool&, const test::GitServer&)> real_world(
    Narrator& narrator) {
  struct Peers {
    std::unique_ptr<test::PeerCluster> cluster;
    std::unique_ptr<test::PeerArgoCd> argocd;
    std::unique_ptr<test::PeerEvents> events;
    int event_source_port = test::free_port();
  };
  const auto peers = std::make_shared<Peers>();
  narrator.step("starting etcd, the Kubernetes control plane and kwok");
  peers->cluster = std::make_unique<test::PeerCluster>();
  narrator.step("starting Redis and Argo CD");
  peers->argocd = std::make_unique<test::PeerArgoCd>(*peers->cluster);
  narrator.step("starting PostgreSQL, NATS and an event source of Argo Events");
  const auto database = test::PostgresServer::shared().new_database();
  peers->events = std::make_unique<test::PeerEvents>(*peers->cluster);
  peers->cluster->create_namespace("argo");
  peers->events->serve("argo", "github",
                       test::PeerEvents::github_push(kWebhook, peers->event_source_port),
                       peers->event_source_port);
  return [peers, database](asio::thread_pool& pool, const test::GitServer& git) -> Task<World> {
    const auto on_pool = [&pool](auto function) { return test::run_on(pool, std::move(function)); };
    co_await on_pool([peers] { peers->cluster->create_namespace(kDestination); });
    const auto bus = std::make_shared<BusReader>(co_await asio::this_coro::executor);
    co_await bus->start(peers->events->bus_port());
    World world;
    world.description =
        "real Kubernetes (kwok simulates its pods), Argo CD, Argo Events, PostgreSQL and Git "
        "server";
    world.database = database;
    world.kubernetes_url = peers->cluster->server_url();
    world.argocd_url = peers->argocd->url();
    world.argocd_token = peers->argocd->token();
    world.kubeconfig = peers->cluster->kubeconfig().string();
    world.app_namespace = test::PeerArgoCd::kNamespace;
    world.kubectl = (test::peers_folder() / "bin" / "kubectl").string();
    world.create_app = [peers, on_pool, &git](std::string name, std::string repository) -> Task<> {
      co_await on_pool([peers, name, repository, &git] {
        peers->argocd->add_repository(repository, git.username(), git.password());
        peers->argocd->create_application(nlohmann::json{
            {"metadata",
             {{"name", name},
              {"namespace", test::PeerArgoCd::kNamespace},
              {"labels", {{"team", "shop"}}},
              {"finalizers", {"resources-finalizer.argocd.argoproj.io"}}}},
            {"spec",
             {{"project", "default"},
              {"destination",
               {{"server", "https://kubernetes.default.svc"}, {"namespace", kDestination}}},
              {"source", {{"repoURL", repository}, {"path", "."}, {"targetRevision", "main"}}},
              // With these rates many resources sync within two seconds.
              {"syncPolicy", {{"syncOptions", {"Validate=false", "ApplyOutOfSyncOnly=true"}}}}}}}
                                              .dump());
      });
    };
    world.sync = [peers, on_pool](std::string name, std::string revision) -> Task<> {
      co_await on_pool([peers, &name, &revision] { peers->argocd->sync_to(name, revision); });
    };
    world.delete_app = [peers, on_pool](std::string name) -> Task<> {
      co_await on_pool([peers, &name] {
        peers->argocd->request_ok("DELETE", "/api/v1/applications/" + name + "?cascade=true");
      });
    };
    world.secret = [peers, on_pool](std::string name, std::string key) -> Task<std::string> {
      co_return co_await on_pool([peers, &name, &key] {
        const auto reply =
            peers->cluster->request("GET", std::string("/api/v1/namespaces/") +
                                               test::PeerArgoCd::kNamespace + "/secrets/" + name);
        return reply.ok() ? value_in(nlohmann::json::parse(reply.body), key) : std::string();
      });
    };
    world.reads = [peers, on_pool]() -> Task<World::Reads> {
      auto counts = co_await on_pool([peers] { return peers->argocd->read_counts(); });
      const auto of = [&](const char* method) {
        return static_cast<std::size_t>(
            counts[std::string("application.ApplicationService/") + method]);
      };
      const World::Reads reads{of("ResourceTree"), of("ManagedResources"), of("RevisionMetadata")};
      co_return reads;
    };
    world.event_source_port = static_cast<std::uint16_t>(peers->event_source_port);
    world.events = [bus] { return bus->bodies; };
    world.stop = [bus]() -> Task<> { co_await bus->stop(); };
    co_return world;
  };
}

}  // namespace gitops::demo
