//! OpenTelemetry: log records with an event name, by OTLP over HTTP, Protobuf in the body.

use std::time::Duration;

use opentelemetry::logs::{LogRecord, Logger, LoggerProvider, Severity};
use opentelemetry_otlp::{Compression, LogExporter, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::logs::{BatchConfigBuilder, BatchLogProcessor, SdkLogger, SdkLoggerProvider};

use super::{Client, Row};
use crate::args::Outcome;
use crate::event::{Checkout, ROUTE};
use crate::sink::Dialect;

/// A response in which every field is left out.
const PROTOBUF: Dialect = Dialect::Marked { content_type: "application/x-protobuf", body: "" };

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "otlp",
        dialect: PROTOBUF,
        settings: "defaults: 2,048 records in memory, batches of 512, no compression",
        build: |url, _| client(url, BatchConfigBuilder::default(), None),
    },
    Row {
        name: "otlp-raised",
        dialect: PROTOBUF,
        settings: "max_queue_size 1,000,000, gzip",
        build: |url, _| {
            let raised = BatchConfigBuilder::default().with_max_queue_size(1_000_000);
            client(url, raised, Some(Compression::Gzip))
        },
    },
];

fn client(url: &str, batch: BatchConfigBuilder, gzip: Option<Compression>) -> Outcome<Box<dyn Client>> {
    let exporter = LogExporter::builder().with_http().with_endpoint(format!("{url}/v1/logs"));
    let exporter = exporter.with_protocol(Protocol::HttpBinary);
    let exporter = match gzip {
        Some(gzip) => exporter.with_compression(gzip),
        None => exporter,
    };
    let processor = BatchLogProcessor::builder(exporter.build()?).with_batch_config(batch.build()).build();
    let provider = SdkLoggerProvider::builder().with_log_processor(processor).build();
    let logger = provider.logger("bench");
    Ok(Box::new(OfOtlp { provider, logger }))
}

struct OfOtlp {
    provider: SdkLoggerProvider,
    logger: SdkLogger,
}

impl Client for OfOtlp {
    fn post(&mut self, event: &Checkout) {
        let mut record = self.logger.create_log_record();
        record.set_event_name(ROUTE);
        record.set_severity_number(Severity::Info);
        record.add_attribute("path", event.path);
        record.add_attribute("amount", event.amount);
        record.add_attribute("currency", event.currency);
        record.add_attribute("ok", event.ok);
        record.add_attribute("n", event.n);
        self.logger.emit(record);
    }

    fn finish(self: Box<Self>, within: Duration) -> String {
        match self.provider.shutdown_with_timeout(within) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}
