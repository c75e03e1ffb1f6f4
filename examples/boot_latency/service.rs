//! The service whose requests must not wait: `/` says what the boot has brought so far, `/search?q=` finds
//! text in the corpus. Both answer from the first moment on, with what there is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use afterboot::Governor;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::app::App;

/// What the client asks for, in turn.
pub(crate) const PATHS: [&str; 8] = [
    "/",
    "/search?q=spawn_blocking",
    "/",
    "/search?q=impl+Future",
    "/",
    "/search?q=WouldBlock",
    "/",
    "/search?q=fn+poll_read",
];

#[derive(Clone)]
pub(crate) struct Service {
    app: Arc<App>,
    /// Only under the governed strategy: requests tell the governor that the application is busy.
    governor: Option<Governor>,
}

impl Service {
    pub(crate) fn new(app: Arc<App>, governor: Option<Governor>) -> Self {
        Self { app, governor }
    }

    /// Accepts until the runtime ends.
    pub(crate) async fn serve(self, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, say: tried again, not spun on.
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            };
            // Without it the kernel may hold back the end of an answer; the connection works all the same.
            let _ = stream.set_nodelay(true);
            let service = self.clone();
            tokio::spawn(async move {
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, Infallible>(service.answer(&request)) }
                });
                // The client closes its connections when it has its answers; that is no fault of the
                // service.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<String> {
        let _guard = self.governor.as_ref().map(|governor| governor.in_flight("request"));
        let uri = request.uri();
        let query = uri.query().and_then(|query| query.strip_prefix("q="));
        match (uri.path(), query) {
            ("/", _) => Response::new(self.app.home()),
            ("/search", Some(query)) => Response::new(self.app.search(&query.replace('+', " "))),
            _ => {
                let mut response = Response::new("there is / and /search?q=text\n".to_owned());
                *response.status_mut() = hyper::StatusCode::NOT_FOUND;
                response
            }
        }
    }
}
