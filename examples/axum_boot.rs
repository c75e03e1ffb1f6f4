//! A complete web service: it answers from the first moment on, and boots behind its answers.
//!
//! A source code search over the crates that cargo has compiled for it. Thirteen side tasks make it better one by one;
//! `/readyz` says when those are done that it should not be in service without, a search demands the index if it comes
//! first, and ctrl-c ends it in order.
//!
//! `cargo run --release --example axum_boot --features tower,page`, and with `-- --page boot.html` it boots under some
//! load of its own, writes the page of the report and exits. `-- --help` has the rest.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

#[path = "axum_boot/load.rs"]
mod load;
#[path = "axum_boot/options.rs"]
mod options;

// The application that boots: corpus and side tasks are those of the example `boot_latency`.
#[path = "boot_latency/app.rs"]
mod app;
#[path = "boot_latency/clock.rs"]
#[expect(dead_code, reason = "boot_latency measures more")]
mod clock;
#[path = "boot_latency/compiled.rs"]
mod compiled;
#[path = "boot_latency/corpus.rs"]
#[expect(dead_code, reason = "boot_latency can do without a corpus")]
mod corpus;
#[path = "boot_latency/gate.rs"]
mod gate;
#[path = "boot_latency/http.rs"]
mod http;
#[path = "boot_latency/tasks/mod.rs"]
#[expect(dead_code, unused_imports, reason = "boot_latency lists them for other strategies too")]
mod tasks;

use std::collections::HashMap;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use afterboot::{Governor, Queue, Report, Run, Snapshot, Task, TaskHandle};
use axum::Router;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::app::App;
use crate::corpus::Corpus;
use crate::options::{Command, Options};
use crate::tasks::{index, listing, pages, symbols, text};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What running tasks and requests get after the signal to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long the boot may take where only its page is wanted.
const BOOT: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Serve(options)) => options,
        Ok(Command::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    listing::hide_deliberate_panics();
    let corpus = Arc::new(Corpus::of_compiled_crates()?);
    if let Some(runs) = options.gate {
        let one = || boot(options, App::new(Arc::clone(&corpus)));
        println!("{}", gate::check(runs, one)?);
        return Ok(());
    }
    let report = boot(options, App::new(corpus))?;
    println!("\n{report}");
    match &options.page {
        Some(page) => write_page(&report, page),
        None => Ok(()),
    }
}

fn boot(options: &Options, app: Arc<App>) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime.block_on(serve(options, app));
    // A blocking task that outlived the deadline cannot be stopped, and is not waited for.
    runtime.shutdown_background();
    ended
}

// --- the boot ------------------------------------------------------------------------------------------------------

fn governor(options: &Options) -> Result<Governor, Failure> {
    let mut builder = Governor::builder().name("axum_boot").overrides_from_env("AFTERBOOT").await_ready();
    if options.page.is_some() || options.gate.is_some() {
        builder = builder.record_segments().quiet(Duration::from_millis(500));
    }
    Ok(builder.build()?)
}

/// Everything that may come after the first answer. Returns the index, which may be needed at once.
fn declare(governor: &Governor, app: &Arc<App>) -> TaskHandle<()> {
    let index = governor.govern(Task::new("search index", over(app, index::build)));
    let symbols = governor.govern(Task::new("symbol table", over(app, symbols::build)));
    governor.govern(Task::new("suggestions", over(app, symbols::suggest)).after(&symbols));
    governor.govern(Task::new("manifests", over(app, listing::parse_manifests)));
    let files = Arc::clone(app);
    governor.govern(Task::blocking("recent files", move || listing::list_recent(&files)));
    governor.govern(Task::new("synonyms", over(app, listing::load_synonyms))); // fails
    governor.govern(Task::new("saved searches", listing::restore_searches)); // panics
    governor.govern(Task::new("usage ping", listing::ping).when(false));

    // These may still wait or run when the service is ready.
    governor.govern(Task::new("licence scan", over(app, text::scan_licences)).idle());
    governor.govern(Task::new("duplicates", over(app, text::find_duplicates)).idle());
    governor.govern(Task::new("line statistics", over(app, text::count_lines)).idle());
    governor
        .govern(Task::new("readme pages", over(app, pages::render)).idle().timeout(Duration::from_secs(30)));
    governor.govern(Task::new("snapshot", over(app, pages::compress)).idle());
    index
}

/// A body over the application.
fn over<F, B: FnOnce(Arc<App>) -> F>(app: &Arc<App>, body: B) -> impl FnOnce() -> F + use<F, B> {
    let app = Arc::clone(app);
    move || body(app)
}

/// Whether nothing but idle tasks is left.
fn is_ready(snapshot: &Snapshot) -> bool {
    let queued = snapshot.normal + snapshot.waiting + snapshot.resting + snapshot.demanded;
    let running = snapshot.running.iter().any(|task| task.queue == Queue::Normal);
    !snapshot.closed && queued == 0 && !running
}

// --- the routes ----------------------------------------------------------------------------------------------------

#[derive(Clone)]
struct Service {
    governor: Governor,
    app: Arc<App>,
    index: TaskHandle<()>,
}

fn router(service: Service) -> Router {
    let governor = service.governor.clone();
    Router::new()
        .route("/", get(home))
        .route("/search", get(search))
        .route_layer(from_fn_with_state(governor.clone(), observed))
        .route_layer(governor.in_flight_layer(route))
        // Below the layers: readiness probes must not count as requests and delay readiness.
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .with_state(service)
}

/// By route, never by path: the names of what was in flight stand in the report.
fn route(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>().map_or("?", MatchedPath::as_str);
    format!("{} {route}", request.method())
}

/// axum polls each connection in a task of its own, so what holds a worker there is named here.
async fn observed(State(governor): State<Governor>, request: Request, next: Next) -> Response {
    governor.observe(route(&request), next.run(request)).await
}

async fn home(State(service): State<Service>) -> String {
    service.app.home()
}

/// The first search does not wait for the index's turn. However many come, it is built once.
async fn search(
    State(service): State<Service>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<String, (StatusCode, String)> {
    let Some(text) = query.get("q").filter(|text| !text.is_empty()) else {
        return Err((StatusCode::BAD_REQUEST, "say what to look for: /search?q=text\n".to_owned()));
    };
    match service.index.demand().await {
        Ok(_) => Ok(service.app.search(text)),
        Err(why) => Err((StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))),
    }
}

async fn readyz(State(service): State<Service>) -> (StatusCode, String) {
    let snapshot = service.governor.snapshot();
    let status = if is_ready(&snapshot) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, format!("{snapshot}\n"))
}

// --- from the first answer to the last -----------------------------------------------------------------------------

async fn serve(options: &Options, app: Arc<App>) -> Result<Report, Failure> {
    let governor = governor(options)?;
    let index = declare(&governor, &app);

    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", options.listen))?;
    let address = listener.local_addr()?;
    // Without it the kernel may hold back the end of an answer; the connection works all the same.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel();
    let server = axum::serve(listener, router(Service { governor: governor.clone(), app, index }))
        .with_graceful_shutdown(async { drop(stopped.await) });
    let serving = tokio::spawn(governor.observe("http server", server.into_future()));
    governor.ready(); // the first request can be answered
    if options.gate.is_none() {
        println!("http://{address}/ answers. {}", governor.snapshot());
    }

    match (&options.page, options.gate) {
        (None, None) => signal().await?,
        (None, Some(_)) => drop(timeout(BOOT, governor.report().finished()).await),
        (Some(_), _) => tokio::select! {
            ended = boot_under_load(address, governor.report()) => ended?,
            ended = signal() => ended?,
        },
    }

    let ending = governor.shutdown(GRACE); // from here on nothing starts, and /readyz says no
    let _ = stop.send(()); // no more connections; what was asked is still answered
    let report = ending.await;
    match timeout(GRACE, serving).await {
        Ok(served) => served??,
        Err(_) => eprintln!("some requests were not answered within {GRACE:?}"),
    }
    Ok(report)
}

/// Ctrl-C, or what an orchestrator sends.
async fn signal() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn boot_under_load(address: SocketAddr, boot: Run) -> Result<(), Failure> {
    let enough = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&enough);
    let load = tokio::task::spawn_blocking(move || load::run(address, &stop));
    let ended = timeout(BOOT, boot.finished()).await;
    enough.store(true, Relaxed);
    match ended {
        Ok(_) => println!("{}", load.await??),
        Err(_) => eprintln!("the boot is stopped after {BOOT:?}; a release build is faster"),
    }
    Ok(())
}

fn write_page(report: &Report, page: &Path) -> Result<(), Failure> {
    let text = report.to_html();
    std::fs::write(page, text).map_err(|error| format!("cannot write {}: {error}", page.display()))?;
    println!("written: {}", page.display());
    Ok(())
}
