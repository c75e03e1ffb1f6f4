//! Lists of tasks that are declared together.

use crate::api::governor::Governor;
use crate::api::handle::TaskHandle;
use crate::api::task::Task;

/// A list of tasks for [`Governor::govern_all`]: an array, a `Vec`, or a tuple of up to twelve. This trait is sealed.
pub trait TaskList: sealed::Sealed {
    /// The handles, in the same shape as the tasks.
    type Handles;

    #[doc(hidden)]
    fn declare(self, governor: &Governor) -> Self::Handles;
}

mod sealed {
    pub trait Sealed {}
}

impl<T, const N: usize> sealed::Sealed for [Task<T>; N] {}

impl<T: Send + Sync + 'static, const N: usize> TaskList for [Task<T>; N] {
    type Handles = [TaskHandle<T>; N];

    fn declare(self, governor: &Governor) -> Self::Handles {
        self.map(|task| governor.govern(task))
    }
}

impl<T> sealed::Sealed for Vec<Task<T>> {}

impl<T: Send + Sync + 'static> TaskList for Vec<Task<T>> {
    type Handles = Vec<TaskHandle<T>>;

    fn declare(self, governor: &Governor) -> Self::Handles {
        self.into_iter().map(|task| governor.govern(task)).collect()
    }
}

macro_rules! tuple {
    ($($task:ident),+) => {
        impl<$($task),+> sealed::Sealed for ($(Task<$task>,)+) {}

        impl<$($task: Send + Sync + 'static),+> TaskList for ($(Task<$task>,)+) {
            type Handles = ($(TaskHandle<$task>,)+);

            #[expect(non_snake_case, reason = "each task is named by its type's letter")]
            fn declare(self, governor: &Governor) -> Self::Handles {
                let ($($task,)+) = self;
                ($(governor.govern($task),)+)
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);
tuple!(A, B, C, D, E, F, G);
tuple!(A, B, C, D, E, F, G, H);
tuple!(A, B, C, D, E, F, G, H, I);
tuple!(A, B, C, D, E, F, G, H, I, J);
tuple!(A, B, C, D, E, F, G, H, I, J, K);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L);
