//! The end of a run whose outcome nobody waits for. A script that waits for its calls ends at once when it is told to, and its worker stays.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::{
    process::{Keeper, Worker},
    slots::{Slot, WorkerSlots},
};
use crate::protocol::{self, MessageKind};

/// Time in which a script ends, or its worker is killed.
const MOMENT: Duration = Duration::from_millis(100);
/// Longest message that is read until then.
const LONGEST: usize = 256 * 1024;

/// Tells the run of `worker` to end, and puts the worker back when it has. One that takes longer is replaced.
pub(super) async fn wind_down(mut worker: Worker, slots: &WorkerSlots, keeper: &Keeper) {
    worker.runs += 1;
    let stopped = match worker.stream.try_clone().and_then(UnixStream::from_std) {
        Ok(stream) => timeout(MOMENT, stop(stream, worker.runs)).await,
        Err(error) => Ok(Err(error)),
    };
    if let Ok(Ok(())) = stopped {
        if let Some(Slot::Ready(worker)) = slots.put(Slot::Ready(worker)) {
            keeper.retire(worker, false, None);
        }
    } else {
        slots.count_replaced(1);
        keeper.retire(worker, true, None);
    }
}

/// Reads what the worker has to say until its run is over.
async fn stop(mut stream: UnixStream, run: u32) -> io::Result<()> {
    let mut message = Vec::new();
    protocol::put(&mut message, MessageKind::Stop, run, 0, "", &[]);
    stream.write_all(&message).await?;
    let mut input = Vec::new();
    loop {
        let mut taken = 0;
        while let Some(bytes) = protocol::frame_len(&input[taken..], LONGEST)
            .map_err(|_| io::ErrorKind::InvalidData)?
            .and_then(|len| input.get(taken..taken + len))
        {
            let frame = protocol::parse(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
            taken += bytes.len();
            if frame.kind == MessageKind::Done {
                let is_last = frame.run == run && taken == input.len();
                return if is_last { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) };
            }
        }
        input.drain(..taken);
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
